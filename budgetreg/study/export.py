"""Export the values of a study as a table, and its model as ``model.npz`` for ``budgetreg predict``."""

from collections.abc import Sequence

import numpy as np

from budgetreg.protocol.calibration import calibrated
from budgetreg.runs.models import model_npz
from budgetreg.runs.tables import as_csv
from budgetreg.study.examples import Target
from budgetreg.study.joint import JointModel
from budgetreg.study.order_files import number_as_text
from budgetreg.study.state import State

_MARK = b"budgetreg study export"


def table_csv(state: State, targets: Sequence[Target | None]) -> bytes:
    """Return a table of all examples: names, attributes and targets, empty where they are not known."""
    columns = (state.facts["id"], *state.attributes, state.facts["target"])
    rows = zip(state.examples, *state.values.T.tolist(), targets, strict=True)
    return as_csv(columns, (dict(zip(columns, map(_text, row), strict=True)) for row in rows))


def _text(cell: Target | None) -> str:
    if cell is None or cell != cell:
        return ""
    return cell if isinstance(cell, str) else number_as_text(cell)


def model_file(model: JointModel, state: State) -> bytes:
    """Return the content of ``model.npz``; of a two-valued target, with what probabilities need.

    Parameters
    ----------
    model : JointModel
        What was learned.
    state : State
        What it was learned from.
    """
    arrays = {"w": model.w, "b": np.array(model.b + model.w @ model.mean), "c": model.mean}
    labelled = len(state.labels) == 2
    if labelled:
        signal = float(model.w @ model.covariance @ model.w)
        y = state.y[~np.isnan(state.y)]
        arrays |= calibrated(y, signal / (signal + model.noise) if signal else 0.0, len(y))
    labels = state.labels if labelled else ()
    return model_npz({0: arrays}, state.attributes, state.facts["target"], labels, comment=_MARK)


def is_exported(content: bytes) -> bool:
    """Return whether a file is a model of `model_file`, and not one that a run has learned."""
    return content.endswith(_MARK)
