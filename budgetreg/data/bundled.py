"""Real tables that need no download: the 8x8 digits bundled with this package, and tables of scikit-learn."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from budgetreg.config.options import Option, one_of
from budgetreg.data.attributes import LEFT_OUT, SCALING, unit
from budgetreg.data.dataset import Dataset
from budgetreg.data.registry import RANDOM, DatasetKind
from budgetreg.data.tables import dropped

_DIGITS = Path(__file__).with_name("digits_3v5.csv")
_PRICES = Path(__file__).with_name("illustrative_prices")
_SCIKIT_LEARN: Mapping[str, Mapping[str, Any]] = {
    "diabetes": {"scaled": False},  # in the original units, as a user's table would be
    "breast_cancer": {},
    "wine": {},
}
"""Arguments of scikit-learn's loader of each table."""


@dataclass(frozen=True)
class Digits:
    """The threes (-1) and fives (+1) of the UCI digits: 64 pixels 0..16, scale 1/16, no official split."""

    name = "digits_3v5"

    def load(self) -> Dataset:
        """Read the bundled table."""
        table = np.loadtxt(_DIGITS, delimiter=",", skiprows=1, dtype=np.uint8)
        y = np.where(table[:, -1] == 3, -1.0, 1.0)
        return Dataset(self.name, np.ascontiguousarray(table[:, :-1]), y, 1 / 16, None, True, label_names=("3", "5"))


@dataclass(frozen=True)
class ScikitLearn:
    """A table of `sklearn.datasets`; two classes are -1 and +1, more of them 0, 1, 2, ..., no official split.

    Parameters
    ----------
    name : str
        ``diabetes``, ``breast_cancer`` or ``wine``.
    scale : {"max_abs", "none", "pilot", "revealed", "ranges"}
        Whether each attribute is divided by its largest absolute value.
    drop : tuple of str
        Columns that are no attributes, by name or number from 1.
    """

    name: str
    scale: str
    drop: tuple[str, ...] = ()

    def load(self) -> Dataset:
        """Read the table from the installation of scikit-learn.

        Raises
        ------
        DataError
            If columns cannot be left out.
        """
        from sklearn import datasets  # here, because it is slow to import and other kinds of data do without

        loaded = getattr(datasets, f"load_{self.name}")(**_SCIKIT_LEARN[self.name])
        X, y, names = loaded.data, loaded.target, tuple(map(str, loaded.feature_names))
        left_out = dropped(self.drop, names, len(names), "target", self.name)
        kept = [at for at in range(len(names)) if at not in left_out]
        X, names = X[:, kept], tuple(names[at] for at in kept)
        two_valued = len(np.unique(y)) == 2
        scale, notes = unit(self.scale, np.abs(X).max(axis=0))
        y = np.where(y == y.max(), 1.0, -1.0) if two_valued else y.astype(np.float64)
        X = np.ascontiguousarray(X, dtype=np.float64)
        labels = tuple(map(str, loaded.target_names)) if two_valued else ()
        return Dataset(
            self.name,
            X,
            y,
            scale,
            None,
            two_valued,
            notes,
            names=names,
            label_names=labels,
            dropped=tuple(left_out.items()),
        )


KINDS = (
    DatasetKind.of("digits", Digits, splits=(RANDOM,), domain="inf-ball"),
    DatasetKind(
        name="scikit_learn",
        parse=lambda options: ScikitLearn(options["table"], options["scale"], tuple(map(str, options["drop"]))),
        options={"table": Option("the table", one_of(*_SCIKIT_LEARN)), **SCALING, **LEFT_OUT},
        splits=(RANDOM,),
        own_data=True,
        paths=("ranges", "groups"),
        prices=lambda options: _PRICES / f"{options['table']}.csv",  # made up for illustration
    ),
)
