"""Many trainings of the table net at once: a leading axis of runs through everything.

A study is many small trainings of one shape, and a small training is mostly the cost of calling
torch. Runs that share a batch size and the form of their method go through the same calls as one
stack: batches, augmentation, net and optimizer have an axis of runs in front. Each run keeps its
own seed, split, rates, method parameters, history and end, and its result is that of
:func:`regaug.training.fit` up to rounding.
"""

from regaug.training.stacked.many import fit_many, most_runs

__all__ = ["fit_many", "most_runs"]
