"""Claims with verdicts, savings and their uncertainty, computed from curves; it draws and runs nothing."""
