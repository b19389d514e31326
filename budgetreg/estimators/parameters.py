"""The constructor and the docstring of an estimator, from what its learner declares."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from inspect import Parameter, Signature
from keyword import iskeyword
from typing import Any, NamedTuple

from budgetreg.algorithms.learner import Learner, Missing, Observation
from budgetreg.algorithms.registry import read, section
from budgetreg.config import catalogue
from budgetreg.config.options import AUTO, Requirement, options_of


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


def python_name(name: str) -> str:
    """Return the name of a constant, with an underscore after a word of the language, such as ``lambda_``."""
    return f"{name}_" if iskeyword(name) else name


def arguments(algo: str, tuned: bool) -> list[Argument]:
    """Return the parameters of the estimator of a learner, whose constants are tuned or given."""
    learner = learner_of(algo)
    options, values, beside = options_of(type(learner)), section(algo), catalogue.comments("algo", algo)
    listed = [_budget(learner)]
    if tuned:
        names = " and ".join(f"``{name}``" for name in learner.tuned)
        what = f"Lists of values to try of {names}. None: those of the command."
        listed.append(Argument("grid", None, "dict or None", what))
        listed.append(Argument("folds", 10, "int", "Number of folds of the cross-validation."))
    else:
        for name in learner.tuned:  # which has to be given
            what = f"{_sentence(learner.in_grid(name).what)} You must set it."
            listed.append(Argument(python_name(name), None, "float", what))
    for name, option in options.items():
        if name in learner.options_without_draws or not option.applies(values):
            continue
        what = _described(option.what, beside.get(name, "").replace("null", "None"))
        listed.append(Argument(name, values.get(name, option.default), _kind(option.must), what))
    if learner.predicts:
        moves = "origin" not in learner.skipped_checks  # attributes may then be centred on what was seen
        listed.append(Argument("fit_intercept", moves, "bool", _INTERCEPT))
        listed.append(Argument("center", None if moves else "none", "{'revealed', 'full', 'none'} or None", _CENTER))
        listed.append(Argument("pilot", None, "{'auto'}, int or None", _PILOT))
        listed.append(Argument("predict_k", None, "int or None", _PREDICT))
        listed.append(Argument("scale", None, "{'revealed', 'pilot', 'max_abs', 'none'} or None", _SCALE))
    else:
        listed.append(Argument("center", None, "{'none', 'full'} or None", _CENTER_SUBSPACE))
        listed.append(Argument("scale", None, "{'max_abs', 'none'} or None", _SCALE_SUBSPACE))
    listed.append(Argument("costs", None, "array-like of shape (d,), dict or None", _costs(learner)))
    if learner.draws_groups:
        listed.append(Argument("groups", None, "array-like of shape (d,), dict or None", _GROUPS))
    listed.append(Argument("total", None, "int or None", f"{_TOTAL}{_BEYOND if tuned else ''}"))
    listed.append(Argument("random_state", 0, "int, RandomState instance or None", _RANDOM))
    return listed


_KINDS = {"whole number": "int", "a number": "float", "true": "bool", "null": "None"}


def _kind(must: Requirement) -> str:
    """Return what a value must be, as numpydoc has it: ``{'literal', 'even'} or int``."""
    words = [f"{{{', '.join(map(repr, must.choices))}}}"] if must.choices else []
    return " or ".join([*words, *(kind for word, kind in _KINDS.items() if word in must.phrase)])


def _described(what: str, beside: str) -> str:
    """Return a sentence of what an option is and the comment beside it, which may say all."""
    if not beside or what.removeprefix("the ") in beside:
        return _sentence(beside or what)
    return _sentence(f"{what}{'; ' if ': ' in beside else ': '}{beside}")


_INTERCEPT = "Whether the mean of the targets is predicted where attributes are at their means."
_CENTER = (
    "Which means are subtracted from attributes: 'revealed', those of the values seen; 'full', those of all values, at "
    "no cost; 'none'. None means 'revealed'."
)
_CENTER_SUBSPACE = "Which means are subtracted: 'full', those of all values, at no cost; 'none'. None means 'none'."
_PILOT = "Number of full rows that are seen first. None means 'auto', see ``budgetreg fit``."
_PREDICT = "Attributes of a new example that a prediction may see. None: all of them."
_SCALE = (
    "What attributes are divided by: 'revealed', the standard deviations of the values seen, or of the pilot; 'pilot'; "
    "'max_abs', the largest absolute values, at no cost; 'none'. None means 'revealed'."
)
_SCALE_SUBSPACE = (
    "What attributes are divided by: 'max_abs', the largest absolute values; 'none'. None means 'max_abs'."
)
_RANDOM = "Seed of the order of the examples and of all draws. None takes another seed at each fit."


_GROUPS = (
    "Attributes that are bought together, and count as one: a label for each attribute, or labels by name. Attributes "
    "with the same label are a group; those without a label are bought alone."
)
_TOTAL = "The attributes that may be bought in all, or the money, if there are `costs`. None: no limit but k."
_BEYOND = " What cross-validation sees comes on top."


def _costs(learner: Learner) -> str:
    free = "are seen for every example" if learner.uses_free else "are refused"
    group = " One price of a group is enough; the others may be NaN." if learner.draws_groups else ""
    return f"Prices of the attributes, in their order or by name. Attributes with the price 0 {free}.{group}"


def _budget(learner: Learner) -> Argument:
    if sees_all(learner):
        kind, what = "int or None", "Attributes seen of each example. None: all that are present."
        if learner.chooses_k:
            kind, what = f"{{'{AUTO}'}}, {kind}", f"{what} '{AUTO}': the learner chooses how many, within `total`."
        return Argument("k", None, kind, what)
    return Argument("k", None, "int", "Attributes seen of each example. You must set it.")


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


_EXAMPLE = (
    ">>> from sklearn.datasets import load_diabetes\n>>> from budgetreg.estimators import {name}\n"
    ">>> X, y = load_diabetes(return_X_y=True)\n>>> model = {name}({given}).fit(X[:60], y[:60])\n"
    ">>> model.attributes_seen_ <= X[:60].size\nTrue"
)
_GIVEN = ("B=1", "eta=0.01", "eta_two=0.01", "lambda_=1", "forgetting=0.98", "n_components=2", "n_factors=2", "folds=2")
"""Values of parameters in examples."""


def docstring(name: str, algo: str, tuned: bool, listed: Sequence[Argument], attributes: Mapping[str, str]) -> str:
    """Return a numpydoc docstring of the class of a learner."""
    learner, (headline, about) = learner_of(algo), catalogue.description("algo", algo)
    about, _, paper = about.partition("Reference: ")
    k = 10 if learner.observation is Observation.ALL else 4
    given = [f"k={k}", *(word for word in _GIVEN if word.partition("=")[0] in {each.name for each in listed})]
    twin = f"{name.removesuffix('CV')} : The same learner, without" if tuned else f"{name}CV : The same learner, with"
    sections = {
        "Parameters": [f"{each.name} : {each.kind}, default={each.default!r}\n    {each.what}" for each in listed],
        "Attributes": [f"{attribute}\n    {what}" for attribute, what in attributes.items()],
        "See Also": [
            *([f"{twin} cross-validation of its constants."] if learner.tuned else []),
            "budgetreg.fit : The same, with the keys of the command line.",
        ],
        "References": [paper] if paper else [],
        "Examples": [_EXAMPLE.format(name=name, given=", ".join(given))],
    }
    parts = ["\n".join([title, "-" * len(title), *lines]) for title, lines in sections.items() if lines]
    first = f"{headline}{', with its constants chosen by cross-validation' if tuned else ''}."
    return "\n\n".join([first, *filter(None, [about.strip()]), *parts])
