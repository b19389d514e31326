"""How regressors and subspaces move, one module per update, with the estimates and the geometry they need."""
