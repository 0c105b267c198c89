"""The report of a study: one HTML page that needs no network, and its plots."""

from regaug.report.page import write_report
from regaug.studies.study import report_writers

__all__ = ["write_report"]

report_writers.append(write_report)
