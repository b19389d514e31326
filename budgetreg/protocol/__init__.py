"""The papers' protocol: from the checked configuration to a plan, to repetitions; it writes no file."""
