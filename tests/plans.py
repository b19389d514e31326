"""Configurations and plans from words such as ``k=4``, without running Hydra for each."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from omegaconf import OmegaConf

from budgetreg.config.composition import Composer
from budgetreg.protocol.configuration import Config, validate
from budgetreg.protocol.plan import Plan, make_plan
from budgetreg.protocol.repetitions import Result, run_repetitions
from budgetreg.runs.models import packed

composer = cache(Composer)
"""Returns what composes any cells of the default configuration, for which Hydra runs once."""


@cache
def configured(*words: str) -> Config:
    """Return the configuration of ``budgetreg run`` with words that each set one key."""
    return validate(composer()(dict(map(_parsed, words))))


def planned(*words: str) -> Plan:
    return make_plan(configured(*words))


def journaled(plan: Plan, repetitions: Sequence[int] = (0,)) -> list[Result]:
    """Return the results of repetitions as a journal has them, which can be compared bit by bit."""
    results = run_repetitions(plan, list(repetitions), lambda done: None)
    return [{**result, "model": packed(result["model"])} for result in results]


def _parsed(word: str) -> tuple[str, Any]:
    key, _, value = word.partition("=")
    return key, OmegaConf.to_container(OmegaConf.from_dotlist([f"value={value}"]))["value"]  # type: ignore[index,call-overload]
