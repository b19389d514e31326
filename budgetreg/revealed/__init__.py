"""Revealed values that are stored: the draws of attributes, the values, and standardised columns of them."""
