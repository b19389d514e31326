"""``python -m budgetreg`` is the command ``budgetreg``."""

import sys

from budgetreg.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
