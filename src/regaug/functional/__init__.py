"""Pure functions: tensors in, tensors out. Nothing is drawn, stored or read here."""

from regaug.functional.anchor import ada
from regaug.functional.curvature import cems
from regaug.functional.decomposition import rank_at_share
from regaug.functional.foma import foma
from regaug.functional.mixing import kernel_probabilities, mix
from regaug.functional.smogn import relevance, smogn
from regaug.functional.spectral import scale_singular_values

__all__ = [
    "ada",
    "cems",
    "foma",
    "kernel_probabilities",
    "mix",
    "rank_at_share",
    "relevance",
    "scale_singular_values",
    "smogn",
]
