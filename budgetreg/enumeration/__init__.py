"""Exact distributions of a learner's draws for an example, from which checks compute expectations.

The package also enumerates steps outcome by outcome, and certifies that an output is the best for what was shown. It
knows the accessor and draws, but learners only as something that runs.
"""
