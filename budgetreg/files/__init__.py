"""Files: written whole or not at all, and removed only where they are ours; it knows nothing of what is in them."""
