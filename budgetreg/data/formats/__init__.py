"""File formats: a module for each, and the chunked table that all of them give."""
