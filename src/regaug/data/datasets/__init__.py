"""Data sets by name: the list, their files, and a module for each kind."""
