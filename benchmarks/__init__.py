"""Budgets: how much faster than the textbook way, measured side by side in one run."""
