"""What learners draw: attributes for a block of examples, sampling designs, trees of prefix sums; no values."""
