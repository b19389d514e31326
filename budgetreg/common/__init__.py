"""What every layer needs: errors, notices, files that appear whole, and random streams."""
