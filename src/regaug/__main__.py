"""``python -m regaug`` is the command ``regaug``."""

from regaug.cli.main import main

if __name__ == "__main__":
    main()
