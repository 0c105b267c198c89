"""The atlas: what is measured on many real tables, by one protocol."""
