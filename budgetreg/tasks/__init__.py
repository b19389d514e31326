"""Tasks: learning a regressor or a subspace, and judging it on held-out examples, which are seen in full."""
