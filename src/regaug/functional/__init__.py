"""Pure functions: tensors in, tensors out. Nothing is drawn, stored or read here."""

from regaug.functional.anchor import ada
from regaug.functional.curvature import cems
from regaug.functional.decomposition import rank_at_share
from regaug.functional.foma import foma
from regaug.functional.information import mutual_information
from regaug.functional.mixing import kernel_probabilities, mix, stretch
from regaug.functional.partners import assigned_partners, nearest_partners, warp_shares
from regaug.functional.smogn import relevance, smogn
from regaug.functional.spectral import scale_singular_values
from regaug.functional.swapping import feature_mix

__all__ = [
    "ada",
    "assigned_partners",
    "cems",
    "feature_mix",
    "foma",
    "kernel_probabilities",
    "mix",
    "mutual_information",
    "nearest_partners",
    "rank_at_share",
    "relevance",
    "scale_singular_values",
    "smogn",
    "stretch",
    "warp_shares",
]
