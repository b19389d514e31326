"""What conf/ offers and what each of its keys must be; it knows no learner and no data set."""
