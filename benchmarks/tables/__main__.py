"""``python -m benchmarks.tables``: write every table of the README and the docs."""

from benchmarks.tables.pages import write

if __name__ == "__main__":
    for page in write():
        print(page)
