"""The report of a study, and of a fitted model: one HTML page that needs no network."""

from regaug.ensemble import model
from regaug.report.model_page import write_model_report
from regaug.report.page import write_report
from regaug.studies import study

__all__ = ["write_model_report", "write_report"]

study.report_writers.append(write_report)
model.report_writers.append(write_model_report)
