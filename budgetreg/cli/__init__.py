"""The command line: it knows the commands, Hydra's overrides and exit codes, and nothing of how things are computed."""
