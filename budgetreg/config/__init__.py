"""The options in conf/ and what each key must be; this package knows no learner and no data set."""
