"""What is learned, a regressor or a subspace, and what judges it on held-out examples, which are seen in full."""
