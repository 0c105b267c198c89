"""The report of a study, and of a fitted model: one HTML page that needs no network."""

from regaug.report.model_page import write_model_report
from regaug.report.page import write_report

__all__ = ["write_model_report", "write_report"]
