"""What must not be mixed: who cannot keep to it, and what a study says of it."""

from collections.abc import Sequence

import numpy as np

from regaug import methods
from regaug.exceptions import ArgumentError
from regaug.methods import INPUT
from regaug.problems import Problem
from regaug.studies.config import REFERENCE


def leave_out_by_mask(problem: Problem, names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the methods that can act on inputs with a mask, and sentences about the others.

    Without a mask all can.
    """
    if problem.mask is None:
        return tuple(names), []
    whole, deep = [], []
    for name in names:
        method = methods.get(name)
        if not method.prepare().augmentation.takes_mask:
            whole.append(name)
        elif method.defaults["place"] != INPUT:
            deep.append(name)
    sentences = []
    if whole:
        sentences.append(f"Left out, as they cannot leave out single values: {', '.join(whole)}.")
    if deep:
        names_of_deep = ", ".join(deep)
        sentences.append(f"Left out, as what a layer puts out has no mask: {names_of_deep}.")
    kept = tuple(name for name in names if name not in {*whole, *deep})
    if (whole or deep) and not set(kept) - {REFERENCE}:
        raise ArgumentError(
            f"`methods` must have one that can act on inputs with a mask. {' '.join(sentences)}"
        )
    return kept, sentences


def describe_groups(problem: Problem) -> list[str]:
    """Return what a reader should know of groups that are kept apart; nothing if none are.

    No method is left out for them: each can act on the rows of one group.
    """
    labels = problem.splits[0].train.groups
    if problem.pairs_within is None or labels is None:
        return []
    sizes = np.unique(labels.astype(str), return_counts=True)[1]
    sentence = f"Rows are mixed within their groups only, of which there are {len(sizes):,}."
    if alone := int((sizes == 1).sum()):
        sentence += f" The training row of a group that has one only ({alone:,}) stays as it is."
    return [sentence]
