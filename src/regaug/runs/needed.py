"""What the process imports that workers are copies of, as far as there is memory for it.

A worker that lacks something imports it once more, and says in a sentence what is wrong.
"""

from contextlib import suppress
from importlib import import_module

NEEDED = ("regaug.runs.worker", "regaug.training.baselines", "sklearn.ensemble")

for _name in NEEDED:
    with suppress(ImportError, MemoryError, OSError):
        import_module(_name)
