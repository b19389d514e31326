"""Results of every kind, made once."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import budgetreg
from budgetreg.cli.app import main
from tests.conftest import shorten_chains
from tests.sketches import sketch

ODD = "<script>alert('a&b')</script>"
QUICK: dict[str, Any] = {
    **{"k": 4, "repetitions": 2, "checkpoints": 3, "backend": "sequential"},
    **{"tuning": "fixed", "tuning.B": 2, "tuning.eta": 0.01},
}


def make_study(path: Path) -> Path:
    """Write a study with an order of which half has arrived, and names that are no HTML."""
    costs = {ODD: 2.0, "weight": 1.0}
    targets = [float(number % 7) for number in range(40)]
    with budgetreg.Study.create(
        path, examples=[f"p{i}" for i in range(40)], targets=targets, costs=costs, unit="<EUR>"
    ) as study:
        order = study.ask(spend=60)
        values = [(int(example[1:]) % 7) + 0.1 * place for place, example in enumerate(order["example"])]
        study.tell(order.assign(value=pd.Series(values).where(order.index % 2 == 0)))
    return path


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run, a sweep, an advice and a study."""
    place = tmp_path_factory.mktemp("results")
    for name in ("run", "sweep/aelr", "sweep/naive"):
        algo = "naive" if name.endswith("naive") else "aelr"
        budgetreg.run({**QUICK, "algo": algo, "out": str(place / name)})
    words = "advise total=300 k=4,8 algo=aelr,naive repetitions=2 backend=sequential tuning=fixed tuning.B=2"
    with pytest.MonkeyPatch.context() as patch:
        shorten_chains(patch)
        sketch(patch)
        assert main([*words.split(), "tuning.eta=0.01", f"out={place / 'advice'}"]) == 0
        make_study(place / "trial.db")
    return place
