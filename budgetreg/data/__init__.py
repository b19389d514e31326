"""Data sets: from a section of the configuration to stored values, without knowledge of learners and budgets."""
