"""What we use of matplotlib, imported so that the user's settings for it cannot fail a run or print anything.

We draw into files and with settings of our own. So settings that matplotlib refuses (``MPLBACKEND``, a ``matplotlibrc``
that cannot be read) are left out, and its complaints about others, or about its cache, are silenced.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

_SETTINGS = {"MPLBACKEND": "agg", "MATPLOTLIBRC": os.devnull}


@contextmanager
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("matplotlib")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _without_settings() -> Iterator[None]:
    """Hide the user's settings in the block, and forget a first import that they have made fail."""
    for module in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        del sys.modules[module]
    before = dict(os.environ)
    os.environ.update(_SETTINGS)
    try:
        with chdir(Path(__file__).parent):  # a matplotlibrc in the current folder comes before any other
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)


with _quiet():
    try:
        import matplotlib
    except Exception:
        with _without_settings():
            import matplotlib
    from matplotlib import colormaps
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.colors import to_hex, to_rgb
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Text
    from matplotlib.ticker import Formatter, FuncFormatter, Locator, MaxNLocator, NullFormatter

__all__ = [
    "Artist",
    "Axes",
    "Figure",
    "Formatter",
    "FuncFormatter",
    "Line2D",
    "Locator",
    "MaxNLocator",
    "NullFormatter",
    "Patch",
    "Text",
    "colormaps",
    "matplotlib",
    "to_hex",
    "to_rgb",
]
