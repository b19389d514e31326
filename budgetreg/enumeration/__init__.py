"""Exact laws: all that a learner may draw for an example, each outcome with its probability; what the checks build on.

Besides, steps outcome by outcome, and certificates that an output is the best for what was shown. It knows accessor and
draws, and learners only as what runs under examination.
"""
