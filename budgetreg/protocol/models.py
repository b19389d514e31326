"""Models as text: what a repetition has learned, so that it can be written down and is compared like any number."""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

_BYTES = "float64"  # little-endian, in base64: every bit, in less than the digits take


def packed(model: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return arrays of floats as what JSON has; an array of zeros takes no room."""
    return {name: _packed(np.asarray(array)) for name, array in model.items()}


def unpacked(text: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays that `packed` was given, bit by bit but for the sign of a zero among zeros."""
    return {name: _unpacked(one) for name, one in text.items()}


def _packed(array: np.ndarray) -> dict[str, Any]:
    content = {_BYTES: base64.b64encode(array.astype("<f8").tobytes()).decode()} if array.any() else {}
    return {"shape": list(array.shape), **content}


def _unpacked(text: Mapping[str, Any]) -> np.ndarray:
    if _BYTES not in text:
        return np.zeros(text["shape"])
    return np.frombuffer(base64.b64decode(text[_BYTES]), "<f8").reshape(text["shape"])
