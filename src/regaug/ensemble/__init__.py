"""The fitted model: an ensemble of table nets that says how sure it is.

The members are trained as one stack. Each stops on rows of its own, so that together they learn
from every row but those that are put aside, before anything else, to measure the intervals on.
"""

from regaug.ensemble.fit import fit_as, fit_ensemble
from regaug.ensemble.model import Ensemble, Prediction
from regaug.ensemble.rows import CALIBRATION_SHARE, calibration_rows, leave_out

__all__ = [
    "CALIBRATION_SHARE",
    "Ensemble",
    "Prediction",
    "calibration_rows",
    "fit_as",
    "fit_ensemble",
    "leave_out",
]
