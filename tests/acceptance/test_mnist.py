"""MNIST 3-vs-5 on the real files: the numbers that an independent implementation of the same listings measured.

Not part of ``make test``: they need the files of MNIST (BUDGETREG_MNIST names the folder that holds MNIST/raw) and
the extra ``mnist``.  Expected values are means over ten splits; a mean over fewer splits may lie two standard
deviations of a single split away.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

COMMAND = str(Path(sys.executable).with_name("budgetreg"))
ROOT = os.environ["BUDGETREG_MNIST"]


def run(tmp_path, line):
    words = [COMMAND, "run", "dataset=mnist_3v5", f"dataset.root={ROOT}", "n_jobs=2", *shlex.split(line)]
    done = subprocess.run([*words, f"out={tmp_path / 'o'}"], capture_output=True, text=True, timeout=3600)
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    return pd.read_csv(tmp_path / "o" / "curves.csv"), pd.read_csv(tmp_path / "o" / "runs.csv")


def test_arrays_are_what_torchvision_reads():
    from torchvision.datasets import MNIST

    from budgetreg.data.mnist import Mnist

    data = Mnist(ROOT, (3, 5)).load()
    images, labels = [], []
    for train in (True, False):
        part = MNIST(ROOT, train=train)
        images.append(part.data.numpy().reshape(-1, 784))
        labels.append(part.targets.numpy())
    pixels, digits = np.concatenate(images), np.concatenate(labels)
    kept = np.isin(digits, (3, 5))
    np.testing.assert_array_equal(data.X, pixels[kept])
    np.testing.assert_array_equal(data.y, np.where(digits[kept] == 3, -1.0, 1.0))
    assert (len(data.y), data.n_train, int((data.y < 0).sum())) == (13_454, 11_552, 7_141)


@pytest.mark.parametrize(
    ("line", "attributes", "expected", "deviation"),
    [
        ("algo=aelr k=4 repetitions=6", 48_436, 0.735, 0.045),
        ("algo=aer k=4 repetitions=4", 48_436, 0.824, 0.018),
        ("algo=aemr k=5 repetitions=2", 60_545, 0.331, 0.015),
        ("algo=aeml k=4 repetitions=2", 48_436, 0.344, 0.015),
        ("algo=ridge k=4 repetitions=4", 48_436, 0.393, 0.025),
        ("algo=lasso k=4 repetitions=4", 48_436, 0.486, 0.063),
        ("algo=aerr k=56 repetitions=2", 678_104, 0.490, 0.045),
        ("algo=aerr k=56 repetitions=2 algo.split=even", 678_104, 0.347, 0.02),
    ],
)
def test_error_at_the_end_of_the_axis(tmp_path, line, attributes, expected, deviation):
    curves, runs = run(tmp_path, f"{line} checkpoints=4")
    last = curves[curves.examples == curves.examples.max()]
    assert (last.attributes <= attributes).all()
    assert (last.attributes > attributes - 784).all()
    assert abs(last.test_mse.mean() - expected) < 2 * deviation
    assert (runs.attributes_max <= (784 if "ridge" in line or "lasso" in line else int(line.split("k=")[1][:2]))).all()
