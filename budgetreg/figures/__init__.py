"""What is drawn, and how it is told in captions and tables; it reads what runs left and computes no curve."""
