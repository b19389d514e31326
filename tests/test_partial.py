"""The batched cores against the literal listings, on identical draws."""

import numpy as np
import pytest

from budgetreg.accessor import Accessor, Table
from budgetreg.draws import DATA_POINT_SAMPLERS, next_block
from budgetreg.learners import partial
from budgetreg.streams import generator
from tests import listings

LISTING = {"ogd": (listings.aerr, "eta"), "eg": (listings.aelr, "eta"), "pegasos": (listings.aer, "lambda")}


def problem(m, d, seed=0, sparse=0.6):
    """Sparse attributes in [0, 1] and two-valued targets, as images have."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 256, (m, d)) * (rng.random((m, d)) > sparse)
    w = rng.normal(size=d)
    return X.astype(np.uint8), np.where(X / 255 @ w > 0, 1.0, -1.0)


def run(X, y, orders, settings, checkpoints, identities, budget=None, shift=None, **options):
    settings = {name: np.asarray(values, dtype=float) for name, values in settings.items()}
    k = options["k_x"] + options["k_ip"]
    accessor = Accessor(
        Table(X, y, 1 / 255, shift), orders, len(settings["B"]), k if budget is None else budget, checkpoints
    )
    rngs = [generator("test", identity) for identity in identities]
    outputs = dict(partial.fit(accessor, settings, checkpoints, rngs, **options))
    return outputs, accessor.bill()


def draws(identity, m, d, data_point, k_x, k_ip):
    rng, parts = [generator("test", identity)], []
    for _ in range(-(-m // 256)):
        parts.append(next_block(rng, DATA_POINT_SAMPLERS[data_point], d, k_x, k_ip))
    attributes, uniforms = (np.concatenate(part, axis=1)[0, :m] for part in zip(*parts, strict=True))
    return attributes, uniforms


CASES = [
    ("ogd", "uniform", 3, 1, [0.05, 0.4], 1e-9),
    ("ogd", "uniform", 4, 4, [0.05, 0.2], 1e-9),
    ("eg", "uniform", 3, 1, [0.01, 0.3], 1e-12),
    ("eg", "uniform", 2, 3, [0.01, 5.0], 1e-12),
    ("pegasos", "subset", 2, 2, [0.1, 5.0], 1e-9),
    ("pegasos", "subset", 5, 1, [1.0, 50.0], 1e-9),
]


@pytest.mark.parametrize("average", ["all", "suffix", "last"])
@pytest.mark.parametrize(("update", "data_point", "k_x", "k_ip", "steps", "tolerance"), CASES)
def test_core_equals_listing(update, data_point, k_x, k_ip, steps, tolerance, average):
    m, d = 700, 29
    X, y = problem(m, d)
    orders = np.stack([np.random.default_rng(f).permutation(m) for f in range(3)])
    listing, name = LISTING[update]
    settings = {"B": [2.0, 0.7], name: steps}
    checkpoints = [1, 5, 256, 257, 511, 700]
    outputs, bill = run(
        X, y, orders, settings, checkpoints, range(3),
        update=update, data_point=data_point, k_x=k_x, k_ip=k_ip, average=average,
    )  # fmt: skip
    for f in range(3):
        attributes, uniforms = draws(f, m, d, data_point, k_x, k_ip)
        for g in range(2):
            iterates, paid = listing(
                X[orders[f]] / 255, y[orders[f]], attributes, uniforms, settings["B"][g], steps[g]
            )
            for c in checkpoints:
                expected = listings.average(iterates[:c], average)
                np.testing.assert_allclose(outputs[c][f, :, g], expected, rtol=0, atol=tolerance, err_msg=f"{c}")
                assert bill.at[c][f, g] == paid[:c].sum()
