"""The files that a run leaves in its folder: a single writer, and readers. Nothing is computed or drawn."""
