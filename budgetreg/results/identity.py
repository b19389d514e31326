"""What decides the results of a run, and how two such identities differ."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from budgetreg.config.nested import Tree, differing
from budgetreg.files.integrity import record_digest
from budgetreg.protocol.configuration import with_defaults
from budgetreg.results.naming import show

if TYPE_CHECKING:
    from budgetreg.protocol.plan import Plan


def identity_of(plan: "Plan") -> Tree:
    """Return what decides the results of a plan.

    Returns
    -------
    dict
        ``identity``: the part of the configuration that can change a result; ``identity_digest``: its SHA-256;
        ``data``: name, content, shape and prices of the data, because files can change under the same configuration.
    """
    identity = json.loads(json.dumps(plan.config.identity(), sort_keys=True))
    return {
        "identity_digest": record_digest(identity),
        "identity": identity,
        "data": {
            "name": plan.dataset,
            "fingerprint": plan.fingerprint,
            "n_train": plan.n_train,
            "n_test": plan.n_test,
            "d": plan.d,
            **({"prices": plan.prices.digest()} if plan.prices else {}),
        },
    }


def whole_identity(tree: Mapping[str, Any]) -> Tree:
    """Return configuration and data together, from a manifest or from what `identity_of` returns."""
    return {**tree["identity"], "data": tree["data"]}


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return how two configurations, or identities, differ, such as ``"k 4 -> 8"``."""
    return [f"{key} {was} -> {value}" for key, (was, value) in _differing(then, now).items()]


def conflict(there: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Return up to three keys in which results differ from those asked for; empty if there are none."""
    keys = _differing(whole_identity(there), whole_identity(asked))
    words = [f"{key}={was} there but {value} asked" for key, (was, value) in list(keys.items())[:3]]
    return ", ".join([*words, f"and {len(keys) - 3} more"] if len(keys) > 3 else words)


def _differing(then: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return differing keys with both values as text; what a user would name first comes first."""
    keys = differing(with_defaults(then), with_defaults(now))  # an identity holds no defaults
    first = sorted(keys, key=lambda key: (key.startswith("data."), key.count("."), not key.endswith(".name"), key))
    return {key: (_text(keys[key][0]), _text(keys[key][1])) for key in first}


def _text(value: Any) -> str:
    return json.dumps(value) if value in ("", None) else show(value, in_full=True)
