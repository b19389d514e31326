"""What checks and tests compare learners with: all outcomes of their draws, certificates, and listings."""
