"""What a run leaves in its folder, written by a single writer and read back; it neither computes nor draws."""
