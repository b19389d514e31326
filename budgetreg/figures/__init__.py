"""Figures, captions and tables of results; it reads what runs wrote and computes no curve."""
