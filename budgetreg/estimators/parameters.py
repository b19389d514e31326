"""The constructor and the docstring of an estimator, from what its learner declares."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from inspect import Parameter, Signature
from keyword import iskeyword
from typing import Any, NamedTuple

from budgetreg.algorithms.learner import Learner, Missing, Observation
from budgetreg.algorithms.registry import read, section
from budgetreg.config import catalogue
from budgetreg.config.options import options_of


class Argument(NamedTuple):
    """A parameter of a constructor."""

    name: str
    default: Any
    kind: str
    """What it may be, as numpydoc has it."""
    what: str
    """Sentences that describe it."""


@cache
def learner_of(algo: str) -> Learner:
    """Return the learner that a file of ``conf/algo`` describes."""
    learner = read(section(algo))
    assert learner is not None
    return learner


def sees_all(learner: Learner) -> bool:
    """Whether all values that are present can be seen, so that k may be left out."""
    return learner.observation is Observation.ALL or learner.missing is Missing.LEFT_OUT


def moves_origin(learner: Learner) -> bool:
    """Whether attributes may be centred on what was seen, and the mean of the targets be predicted."""
    return learner.predicts and "origin" not in learner.skipped_checks


def python_name(name: str) -> str:
    """Return the name of a constant, with an underscore after a word of the language, such as ``lambda_``."""
    return f"{name}_" if iskeyword(name) else name


def arguments(algo: str, tuned: bool) -> list[Argument]:
    """Return the parameters of the estimator of a learner, whose constants are tuned or given."""
    learner = learner_of(algo)
    options, values = options_of(type(learner)), section(algo)
    listed = [_budget(learner), *(_grid(learner) if tuned else _constants(learner))]
    for name, option in options.items():
        if name in learner.options_without_draws or not option.applies(values):
            continue
        default = values.get(name, option.default)
        listed.append(
            Argument(
                name, default, option.must.phrase.replace("null", "None"), f"{option.what[0].upper()}{option.what[1:]}."
            )
        )
    if learner.predicts:
        listed.append(Argument("fit_intercept", moves_origin(learner), "bool", _INTERCEPT))
        listed.append(Argument("center", None if moves_origin(learner) else "none", _CENTERS, _CENTER))
        listed.append(Argument("pilot", None, "int, 'auto' or None", _PILOT))
        listed.append(Argument("predict_k", None, "int or None", _PREDICT))
    else:
        listed.append(Argument("center", None, "'none', 'full' or None", _CENTER_SUBSPACE))
    listed.append(Argument("scale", None, _SCALES, _SCALE if learner.predicts else _SCALE_SUBSPACE))
    listed.append(Argument("random_state", 0, "int, RandomState instance or None", _RANDOM))
    return listed


_INTERCEPT = "Whether the mean of the targets is predicted where attributes are at their means."
_CENTERS = "'revealed', 'full', 'none' or None"
_CENTER = (
    "Which means are subtracted from attributes: 'revealed', those of the values seen; 'full', those of all values, at "
    "no cost; 'none'. None means 'revealed'."
)
_CENTER_SUBSPACE = "Which means are subtracted: 'full', those of all values, at no cost; 'none'. None means 'none'."
_PILOT = "Number of full rows that are seen first. None means 'auto', see ``budgetreg fit``."
_PREDICT = "Attributes of a new example that a prediction may see. None: all of them."
_SCALES = "'revealed', 'pilot', 'max_abs', 'none' or None"
_SCALE = (
    "What attributes are divided by: 'revealed', the standard deviations of the values seen, or of the pilot; 'pilot'; "
    "'max_abs', the largest absolute values, at no cost; 'none'. None means 'revealed'."
)
_SCALE_SUBSPACE = (
    "What attributes are divided by: 'max_abs', the largest absolute values; 'none'. None means 'max_abs'."
)
_RANDOM = "Seed of the order of the examples and of all draws. None takes another seed at each fit."


def _budget(learner: Learner) -> Argument:
    if sees_all(learner):
        return Argument("k", None, "int or None", "Attributes seen of each example. None: all that are present.")
    return Argument("k", None, "int", "Attributes seen of each example. It has to be given.")


def _constants(learner: Learner) -> list[Argument]:
    """Return the parameters that have to be given."""
    return [
        Argument(python_name(name), None, "float", f"{_sentence(learner.in_grid(name).what)} It has to be given.")
        for name in learner.tuned
    ]


def _grid(learner: Learner) -> list[Argument]:
    """Return the parameters of the tuning."""
    names = " and ".join(f"``{name}``" for name in learner.tuned)
    return [
        Argument("grid", None, "dict or None", f"Lists of values to try of {names}. None: those of the command."),
        Argument("folds", 10, "int", "Number of folds of the cross-validation."),
    ]


def _sentence(what: str) -> str:
    return f"{what[0].upper()}{what[1:]}."


def constructor(listed: Sequence[Argument]) -> Callable[..., None]:
    """Return a function ``__init__`` that stores these keyword parameters, as scikit-learn requires."""
    defaults = {argument.name: argument.default for argument in listed}

    def __init__(self: Any, **given: Any) -> None:  # noqa: N807 - it becomes the method of that name
        unknown = [name for name in given if name not in defaults]
        if unknown:
            raise TypeError(f"{type(self).__name__}: no parameter {unknown[0]!r}; parameters: {', '.join(defaults)}")
        for name, default in defaults.items():
            setattr(self, name, given.get(name, default))

    keywords = [Parameter(name, Parameter.KEYWORD_ONLY, default=default) for name, default in defaults.items()]
    me = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = Signature([me, *keywords])  # type: ignore[attr-defined]
    return __init__


def docstring(algo: str, tuned: bool, listed: Sequence[Argument], attributes: Mapping[str, str]) -> str:
    """Return a numpydoc docstring: what the learner is, its parameters, and its attributes after fitting."""
    headline = catalogue.headline("algo", algo)
    lines = [f"{headline}{', with its constants chosen by cross-validation' if tuned else ''}.", ""]
    lines += ["Parameters", "----------"]
    for name, default, kind, what in listed:
        lines += [f"{name} : {kind}, default={default!r}", f"    {what}"]
    lines += ["", "Attributes", "----------"]
    for name, what in attributes.items():
        lines += [name, f"    {what}"]
    return "\n".join(lines)
