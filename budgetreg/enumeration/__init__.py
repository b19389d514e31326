"""Exact laws: all that a learner may draw for an example, each outcome with its probability; what the checks build on.

It knows accessor and draws, and learners only as what runs under examination.
"""
