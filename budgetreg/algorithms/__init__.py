"""The learners, one module or package for each paper, and what several of them share."""
