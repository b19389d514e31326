"""Make the bundled digits from scikit-learn's copy of UCI's: ``python scripts/make_digits_3v5.py [FILE]``."""

import sys
from pathlib import Path

from sklearn.datasets import load_digits

BUNDLED = Path(__file__).parents[1] / "budgetreg" / "data" / "digits_3v5.csv"


def table() -> str:
    """Return the threes and fives in scikit-learn's order, as CSV: 64 pixels 0..16 row by row, the digit."""
    digits = load_digits()
    lines = [",".join([f"p{pixel:02d}" for pixel in range(64)] + ["label"])]
    for pixels, label in zip(digits.data, digits.target, strict=True):
        if label in (3, 5):
            lines.append(",".join(str(int(value)) for value in [*pixels, label]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else BUNDLED
    target.write_bytes(table().encode("ascii"))
    print(target)
