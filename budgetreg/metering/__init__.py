"""The accessor, the only way from a learner to a value: it counts each reveal and refuses an overspend."""
