"""Pure functions: tensors in, tensors out. Nothing is drawn, stored or read here."""

from regaug.functional.foma import foma
from regaug.functional.spectral import rank_at_share, scale_singular_values

__all__ = ["foma", "rank_at_share", "scale_singular_values"]
