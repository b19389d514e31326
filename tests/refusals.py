"""Messages of errors, each of which is one line."""

from collections.abc import Callable
from typing import Any

import pytest


def refusal(error: type[Exception], function: Callable[..., object], *words: Any, **options: Any) -> str:
    """Return the message of the error that a call raises."""
    with pytest.raises(error) as caught:
        function(*words, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message
