"""Training: one run of any model, or many runs of the table net at once."""

from regaug.training.loop import fit
from regaug.training.results import Epoch, RunResult
from regaug.training.settings import Machine, Settings
from regaug.training.stacked import fit_many

__all__ = ["Epoch", "Machine", "RunResult", "Settings", "fit", "fit_many"]
