"""The section about a study: what was paid, what is on order, how large the error is, and what more money brings."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from budgetreg.errors import DataError
from budgetreg.figures.registry import plot
from budgetreg.figures.specification import Drawing
from budgetreg.figures.tables import ABOUT_ESTIMATES, bill_tables, estimates_table, paid_in_all, right, size_of
from budgetreg.report.images import drawn
from budgetreg.report.page import PagePart, PageTable, Section
from budgetreg.report.tables import listing, page_table
from budgetreg.study.state import State
from budgetreg.study.study import Study

_BILLS = ("By attribute", "By order")
_FACTS = {
    "algo": "learner",
    "seed": "seed of all draws",
    "target": "column to predict",
    "id": "column of the examples' names",
    "unit": "unit of the prices",
}


def section_of_study(path: Path) -> Section:
    """Return the section about a study; its estimates are kept in the file, as ``budgetreg study show`` does.

    Raises
    ------
    DataError
        If the file is no study, or damaged.
    """
    with Study(path) as study:
        state, bill = study.state(), study.bill()
        warnings, estimated = [], []
        try:
            estimates = study.estimates()
        except DataError as error:
            warnings.append(f"There is no estimate of the error: {error}")
        else:
            estimated.append(
                page_table(estimates_table(estimates, bill.unit), _sentence(ABOUT_ESTIMATES.removesuffix(":")))
            )
        name = path.resolve().stem
        picture = drawn(lambda folder: plot(study, folder, name, Drawing(kind="study")))
        events = Counter(study.log()["event"])
    bills = [page_table(table, caption) for table, caption in zip(bill_tables(bill), _BILLS, strict=False)]
    parts = [
        PagePart("Error and what is known", pictures=[picture], tables=estimated),
        PagePart("Bill", [f"{_sentence(paid_in_all(bill))}."], tables=bills),
        PagePart("Provenance", tables=list(_provenance(state, events)), folded=True),
    ]
    return Section(f"Study {name}", "study", [f"{size_of(state)}."], warnings, parts)


def _sentence(text: str) -> str:
    """Return text with a capital letter at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"


def _provenance(state: State, events: Mapping[str, int]) -> Iterator[PageTable]:
    facts = [(what, state.facts[key]) for key, what in _FACTS.items() if key in state.facts]
    yield listing("How the study was created", ("what", "value"), facts)
    yield listing("Recorded events", ("event", *right("times")), sorted(events.items()))
