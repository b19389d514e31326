"""What learners draw: attributes for a block of examples, sampling designs, and the segment trees behind; no values."""
