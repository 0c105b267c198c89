"""Studies: many runs, compared: search, statistics, verdict."""
