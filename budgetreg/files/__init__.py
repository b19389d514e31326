"""Files: written whole or not at all, checked for damage, and removed only if they are ours."""
