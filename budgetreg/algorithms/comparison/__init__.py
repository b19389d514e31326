"""What one does without these papers: the same attributes of each example, and imputation."""
