"""Commands: each parses, calls the library, prints."""
