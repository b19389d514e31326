"""Executing a plan in processes, resumably, with progress; it decides nothing of what is computed."""
