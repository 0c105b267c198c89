"""The report of a study: one HTML page that needs no network, and its plots."""

from regaug.report.facts import Facts, describe, read_facts, write_facts
from regaug.report.page import write_report

__all__ = ["Facts", "describe", "read_facts", "write_facts", "write_report"]
