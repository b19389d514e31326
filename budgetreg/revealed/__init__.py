"""Revealed values that are kept: which attributes are drawn, what was seen of them, and in which units."""
