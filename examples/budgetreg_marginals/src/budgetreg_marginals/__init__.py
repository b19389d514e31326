"""Marginal ridge, a learner, and equicorrelated attributes, a kind of data, for budgetreg."""
