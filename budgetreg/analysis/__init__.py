"""What curves say: claims with verdicts, savings, and their uncertainty; it draws nothing and runs nothing."""
