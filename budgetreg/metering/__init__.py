"""The accessor, the only way to a value: it counts each reveal and refuses an overspend."""
