"""How a regressor moves: one module per update, each with the lazily averaged state of all replicas."""
