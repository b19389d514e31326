"""A new study: its examples, attributes and prices."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from budgetreg.data.attributes import EQUAL, UNIT, Ranges, groups_of_prices, read_prices, read_ranges
from budgetreg.data.groups import Groups, numbered
from budgetreg.errors import ConfigError, DataError, nearest, quoted
from budgetreg.study import store
from budgetreg.study.examples import Examples, check_targets
from budgetreg.study.sheets import read_sheet, text_of

NO_PRICES = "attributes"
"""The unit of a bill without prices."""

Costs = Path | Mapping[str, float] | None
"""A price list: a file, or a price for each attribute; None: each attribute costs 1."""


@dataclass(frozen=True)
class Attributes:
    """The attributes that can be bought.

    Attributes
    ----------
    names : tuple of str
        The d attributes.
    costs : tuple of float
        Their prices; of a group, that of its head, and 0 of the others.
    groups : Groups or None
        Attributes that are bought together.
    ranges : tuple of (float, float), or None
        The usual range of each attribute.
    unit : str
        The unit of the prices.
    """

    names: tuple[str, ...]
    costs: tuple[float, ...]
    groups: Groups | None
    ranges: Ranges | None
    unit: str


def attributes_of(
    examples: Examples,
    names: Sequence[str],
    costs: Costs,
    groups: Mapping[str, str] | None,
    ranges: Path | None,
    unit: str | None,
    others: Sequence[str],
) -> Attributes:
    """Return what can be bought: the columns of the examples, `names`, and what else the price list names.

    Parameters
    ----------
    examples : Examples
        The examples with which a study begins.
    names : sequence of str
        Attributes that no example has yet.
    costs : Path, mapping or None
        The price list.
    groups : mapping of str to str, optional
        The group of each attribute that has one, if the price list is no file.
    ranges : Path, optional
        The list of ranges.
    unit : str, optional
        The unit of the prices.
    others : sequence of str
        Columns that are no attributes; lists may name them.

    Raises
    ------
    ConfigError
        If there are fewer than two attributes, or groups in two places.
    DataError
        If a list cannot be used.
    """
    known = list(dict.fromkeys([*examples.values, *names]))
    if isinstance(costs, Path):
        sheet = read_sheet(costs, "costs")
        listed = map(text_of, sheet.column("attribute", "a price list has the columns attribute,cost"))
        known = list(dict.fromkeys([*known, *(name for name in listed if name and name not in others)]))
    elif costs is not None:
        known = list(dict.fromkeys([*known, *costs]))
    d = len(known)
    if d < 2:
        raise ConfigError(
            f"{examples.sheet.source} has {d} attribute(s), but two are needed: list attributes without known values "
            "in costs=FILE"
        )
    dropped = [(d + at, name) for at, name in enumerate(others)]
    if isinstance(costs, Path):
        if groups:
            raise ConfigError("groups: the price list is a file: write the groups into its column group")
        together = groups_of_prices(costs, known, d, dropped)
        prices = read_prices(costs, known, d, unit or UNIT, dropped, together).costs
    else:
        together = _grouped(known, groups or {})
        prices = (
            read_prices(EQUAL, known, d, groups=together).costs if costs is None else _priced(known, costs, together)
        )
        unit = unit or (NO_PRICES if costs is None else UNIT)
    usual = None if ranges is None else read_ranges(ranges, known, d, dropped)
    return Attributes(tuple(known), prices, together, usual, unit or UNIT)


def create(path: Path, examples: Examples, attributes: Attributes, seed: int, algo: str) -> bool:
    """Write a new study, unless it is there already as this call would write it.

    Returns
    -------
    bool
        Whether it is new.

    Raises
    ------
    ConfigError
        If there is another file.
    DataError
        If the targets cannot be used.
    UserError
        If the file cannot be written.
    """
    check_targets(examples)
    heads = attributes.groups.heads if attributes.groups else range(len(attributes.names))
    low, high = attributes.ranges or ((None,) * len(attributes.names),) * 2
    number = {name: at for at, name in enumerate(attributes.names)}
    cells = sorted(
        (example, number[name], "known", value, None, 0)
        for name, values in examples.values.items()
        for example, value in enumerate(values)
        if value is not None
    )
    tables: list[tuple[str, list[Sequence[Any]]]] = [
        ("attributes", list(zip(number.values(), number, attributes.costs, heads, low, high, strict=True))),
        ("examples", [(at, *row) for at, row in enumerate(zip(examples.names, examples.targets, strict=True))]),
        ("cells", cells),  # type: ignore[list-item]
    ]
    facts = {"algo": algo, "id": examples.id, "seed": str(seed), "target": examples.target, "unit": attributes.unit}
    facts["origin"] = hashlib.sha256(repr((tables, facts)).encode()).hexdigest()
    if _is_there(path, facts["origin"]):
        return False
    store.create(path, [*tables, ("facts", list(facts.items()))])
    return True


def _is_there(path: Path, origin: str) -> bool:
    """Return whether a file is a study that began as another would; the command that makes it can then be repeated."""
    try:
        there = store.StudyFile(path)
        with there.reading():
            return bool(there.one("SELECT content FROM facts WHERE name = 'origin'") == origin)
    except DataError:
        return False


def _grouped(names: Sequence[str], groups: Mapping[str, str]) -> Groups | None:
    _refuse_unknown(names, groups, "groups")
    return numbered([groups.get(name, "") for name in names])


def _priced(names: Sequence[str], costs: Mapping[str, float], groups: Groups | None) -> tuple[float, ...]:
    """Return the prices of attributes by name; any member of a group may state its price."""
    heads = groups.heads if groups else tuple(range(len(names)))
    stated: dict[int, float] = {}
    for head, name in zip(heads, names, strict=True):
        if name not in costs:
            continue
        cost = float(costs[name])
        if not 0 <= cost < float("inf"):
            raise ConfigError(f"costs: the price of {quoted(name)} is {cost}: it must be a number of at least 0")
        if stated.setdefault(head, cost) != cost:
            raise ConfigError(f"costs: the group of {quoted(name)} has the price {stated[head]:g} already")
    missing = [quoted(name) for head, name in zip(heads, names, strict=True) if head not in stated]
    if missing:
        raise ConfigError(f"costs: no price for {', '.join(missing)}: each of the {len(names)} attributes needs one")
    if not any(stated.values()):
        raise ConfigError("costs: every price is 0, so there is nothing to buy; give one price above 0")
    return tuple(stated[head] if head == at else 0.0 for at, head in enumerate(heads))


def _refuse_unknown(names: Sequence[str], given: Mapping[str, object], key: str) -> None:
    unknown = next((name for name in given if name not in names), None)
    if unknown is not None:
        raise ConfigError(f"{key}: there is no attribute {quoted(unknown)}{nearest(unknown, names)}")
