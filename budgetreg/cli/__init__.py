"""The command line: commands, Hydra's overrides and exit codes. Nothing is computed here."""
