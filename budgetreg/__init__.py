"""Linear regression when every attribute costs: learners on a budget, with an honest attribute bill."""

__version__ = "0.1.0"
