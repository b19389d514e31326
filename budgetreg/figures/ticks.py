"""Ticks in the numbers that one reads: 300, 2k, 50k and 1.5M, on linear and logarithmic axes."""

from collections.abc import Sequence
from math import floor, log10
from typing import Any

import numpy as np

from budgetreg.figures.library import Axes, Formatter, FuncFormatter, Locator, MaxNLocator, NullFormatter

_SIZES = ((1e9, "B"), (1e6, "M"), (1e3, "k"))
_MOST = 7  # ticks of an axis
_WITHIN_A_DECADE = ((1, 1.5, 2, 3, 4, 5, 6, 8), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def compact(value: float) -> str:
    """Return a number as a tick shows it.

    Examples
    --------
    >>> [compact(value) for value in (0.05, 300, 2000, 1.5e6, 1e-6, 3e-5)]
    ['0.05', '300', '2k', '1.5M', '10⁻⁶', '3·10⁻⁵']
    """
    for size, letter in _SIZES:
        if abs(value) >= size * (1 - 1e-9):
            return f"{value / size:.4g}{letter}"
    if value == 0 or abs(value) >= 0.99e-3:
        return f"{value:.4g}"
    digits, exponent = f"{value:.3e}".split("e")
    power = f"10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    return power if float(digits) == 1 else f"{float(digits):g}·{power}"


class LogTicks(Locator):
    """Ticks of a logarithmic axis: as many round numbers per decade as there is space for."""

    def __call__(self) -> Any:
        """Return the ticks of the axis as it is now."""
        return self.tick_values(*self.axis.get_view_interval())  # type: ignore[union-attr]

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return the ticks of a range."""
        low, high = sorted((vmin, vmax))
        if not low > 0:
            return []
        decades = 10.0 ** np.arange(floor(log10(low)), floor(log10(high)) + 1)
        for steps in _WITHIN_A_DECADE:
            ticks = np.outer(decades, steps).ravel()
            ticks = ticks[(low <= ticks * (1 + 1e-9)) & (ticks <= high * (1 + 1e-9))]
            if len(ticks) <= _MOST:
                break
        else:
            ticks = ticks[:: -(-len(ticks) // _MOST)]
        if len(ticks) > 1:
            return ticks.tolist()
        return [tick for tick in MaxNLocator(4).tick_values(low, high) if low <= tick <= high]


class Compact(Formatter):
    """Numbers of a linear axis: all with as many decimals as one of them needs."""

    _decimals = 0

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Return the text of a tick."""
        return compact(x) if self._decimals == 0 else f"{x:.{self._decimals}f}"

    def set_locs(self, locs: Any) -> None:
        """Choose the number of decimals."""
        small = all(abs(tick) < _SIZES[-1][0] for tick in locs)
        self._decimals = max((len(f"{tick:.4g}".partition(".")[2]) for tick in locs if small), default=0)


def set_ticks(ax: Axes, *, x: bool = True, y: bool = True) -> None:
    """Give the axes of a panel compact ticks; call it when the scales are set."""
    for axis, wanted in ((ax.xaxis, x), (ax.yaxis, y)):
        if not wanted:
            continue
        if axis.get_scale() == "log":
            axis.set_major_locator(LogTicks())
            axis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))
            axis.set_minor_formatter(NullFormatter())
        else:
            axis.set_major_locator(MaxNLocator(_MOST - 1, steps=[1, 2, 2.5, 5, 10]))
            axis.set_major_formatter(Compact())
