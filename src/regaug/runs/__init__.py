"""Runs: what is to be done, who does it, and what came out."""
