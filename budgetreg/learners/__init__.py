"""Learners: what an update, a source of values and an averaging rule make together."""
