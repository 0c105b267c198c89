"""The fitted model: nets and baselines that predict together and say how sure they are.

Each single model stops, or is chosen, on rows of its own, so that together they learn from every
row but those that are put aside, before anything else, to measure the intervals on.
"""

from regaug.ensemble.blend import fit_blend
from regaug.ensemble.candidates import FitProgress
from regaug.ensemble.component import Component
from regaug.ensemble.diagnosis import Diagnosis
from regaug.ensemble.entry import fit
from regaug.ensemble.fit import fit_ensemble
from regaug.ensemble.model import Ensemble, Prediction
from regaug.ensemble.rows import calibration_rows, leave_out

__all__ = [
    "Component",
    "Diagnosis",
    "Ensemble",
    "FitProgress",
    "Prediction",
    "calibration_rows",
    "fit",
    "fit_blend",
    "fit_ensemble",
    "leave_out",
]
