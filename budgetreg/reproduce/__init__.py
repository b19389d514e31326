"""Reproductions: a paper's recipe, its runs merged into results to be committed, judged and drawn; no learner."""
