"""Reproductions of figures: a recipe is run, and its runs are merged, judged and drawn."""
