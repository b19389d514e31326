"""Update rules of regressors and subspaces, one module each, with the estimates that they need."""
