"""The report of a study: one HTML page that needs no network, and its plots."""

from regaug.report.page import write_report
from regaug.studies.facts import Facts, describe, read_facts, write_facts

__all__ = ["Facts", "describe", "read_facts", "write_facts", "write_report"]
