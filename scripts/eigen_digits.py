"""Draw the leading eigen-digits of MNIST as learners see them at 8 and 28 of 784 pixels.

Every learner, with the options of its file in conf/algo, passes over the 60,000 training images once and outputs ten
orthonormal images, which span its subspace. The figure shows the first five of them, and projections of five test
images onto the subspace of all ten. Writes eigen_digits.png, eigen_digits.pdf and eigen_digits.txt:

    .venv/bin/python scripts/eigen_digits.py --root data
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from budgetreg.runs.workers import pin_blas_threads

pin_blas_threads()

import numpy as np  # noqa: E402 - after the threads are pinned
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402

from budgetreg.algorithms.eigenspaces import leading  # noqa: E402
from budgetreg.algorithms.learner import SideInformation  # noqa: E402
from budgetreg.algorithms.registry import read  # noqa: E402
from budgetreg.algorithms.tasks import compare_with_best  # noqa: E402
from budgetreg.algorithms.tasks import second_moment as moment_of  # noqa: E402
from budgetreg.common.streams import generator  # noqa: E402
from budgetreg.config.catalogue import conf_dir  # noqa: E402
from budgetreg.data.mnist import Mnist  # noqa: E402
from budgetreg.figures.canvas import own_settings, write_figure, write_finding  # noqa: E402
from budgetreg.figures.looks import style  # noqa: E402
from budgetreg.metering.accessor import Accessor  # noqa: E402
from budgetreg.metering.table import Table  # noqa: E402

TARGET = Path(__file__).resolve().parent.parent / "results" / "gonen_2016"
SIDE, N_COMPONENTS, SHOWN = 28, 10, 5
BUDGETS = (8, 28)
LEARNERS = ("aefa", "popca_importance", "popca", "zero_filled_pca")
DIGITS = (0, 2, 4, 5, 8)
"""Digits whose first test image is shown."""
FINDING = "MNIST, 10 dimensions: from 28 of 784 pixels, AEFA's eigen-digits look like those of all pixels"
KEY = """Each row is a learner, with the pixels that it sees of each image
and its relative error on all test images.
Eigen-digits: red is positive, blue is negative."""


@dataclass(frozen=True)
class Learned:
    """A subspace: its learner and budget, orthonormal columns (d, n), and relative error on the test images."""

    learner: str
    r: int
    V: np.ndarray
    relative_error: float


def learn(table: Table, order: np.ndarray, learner: str, r: int) -> np.ndarray:
    """Return the subspace that a learner outputs after a pass in the given order, shape (d, n)."""
    section = {str(key): value for key, value in OmegaConf.load(conf_dir() / "algo" / f"{learner}.yaml").items()}
    configured = read({**section, "n_components": N_COMPONENTS})
    assert configured
    accessor = Accessor(table, order[None], 1, r, [order.size])
    rngs = [generator("eigen_digits", learner, r)]
    ((_, V),) = configured.fit(accessor, {}, [order.size], rngs, SideInformation(r))
    assert isinstance(V, np.ndarray)
    return V[0, 0]


def compared(table: Table, train: np.ndarray, test: np.ndarray) -> list[Learned]:
    """Return the subspaces of all learners, full information first, whose columns decide the signs of all others."""
    C = moment_of(table, test)
    best = leading(C, N_COMPONENTS)
    order = generator("eigen_digits", "order").permutation(train)
    cases = [("pca", table.d), *((learner, r) for r in BUDGETS for learner in LEARNERS)]
    subspaces: list[Learned] = []
    for learner, r in cases:
        V = learn(table, order, learner, r)
        if subspaces:
            V = V * np.where((V * subspaces[0].V).sum(axis=0) < 0, -1, 1)
        subspaces.append(Learned(learner, r, V, compare_with_best(C, V, best)["relative_error"]))
    return subspaces


def picture(images: np.ndarray, subspaces: Sequence[Learned]) -> Figure:
    """Return a figure with the test images, and below them a row for each subspace."""
    rows: list[Learned | None] = [subspaces[0]]
    for above, subspace in pairwise(subspaces):  # a gap where the budget changes
        rows += [subspace] if subspace.r == above.r else [None, subspace]
    heights = [1.0, *(0.12 if row is None else 1.0 for row in rows)]
    widths = [1.0] * SHOWN + [0.3] + [1.0] * SHOWN
    layout = ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.02, wspace=0, hspace=0)
    figure = Figure((0.72 * sum(widths) + 1.6, 0.74 * sum(heights) + 0.55), layout=layout)
    write_finding(figure, FINDING)
    grid = figure.add_gridspec(len(heights), len(widths), height_ratios=heights, width_ratios=widths)
    key = figure.add_subplot(grid[0, :SHOWN])
    key.axis("off")
    key.text(0, 0.5, KEY, fontsize=8, va="center", transform=key.transAxes)
    for n, image in enumerate(images):
        ax = _show(figure.add_subplot(grid[0, SHOWN + 1 + n]), image)
        if n == SHOWN // 2:
            ax.set_title("test images, and what the subspace of ten keeps", fontsize=9)
    for at, row in enumerate(rows, start=1):
        if row is None:
            continue
        for n, v in enumerate(row.V.T[:SHOWN]):
            ax = _show(figure.add_subplot(grid[at, n]), v, signed=True)
            if at == 1 and n == SHOWN // 2:
                ax.set_title("leading five eigen-digits", fontsize=9)
            if n == 0:
                seen = "all pixels" if row.r == row.V.shape[0] else f"k = {row.r}"
                label = f"{style(row.learner).name}\n{seen}\nerror {row.relative_error:.3f}"
                ax.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
        for n, image in enumerate(images):
            _show(figure.add_subplot(grid[at, SHOWN + 1 + n]), row.V @ (row.V.T @ image))
    return figure


def _show(ax: Axes, image: np.ndarray, signed: bool = False) -> Axes:
    most = np.abs(image).max() if signed else 1.0
    ax.imshow(
        image.reshape(SIDE, SIDE),
        cmap="RdBu_r" if signed else "gray",
        vmin=-most if signed else 0,
        vmax=most,
        interpolation="nearest",
    )
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


def text(subspaces: Sequence[Learned], shown: Sequence[int]) -> str:
    """Return the caption, with the errors of all subspaces."""
    lines = [
        "eigen_digits: the leading eigen-digits of MNIST as learners see them, and what they keep of images",
        "",
        "Left: the first five of the ten orthonormal images that a learner returns after one pass over the",
        "60,000 training images of all digits, not centred; red is positive, blue negative, white 0, and each",
        "has the sign that fits its image in the first row. Right: test images (upper row), and their",
        "projections onto the subspace of all ten, black at 0 and white at 1.",
        f"Test images: {', '.join(map(str, shown))}.",
        "",
        "relative error: mean squared distance of the 10,000 test images from the subspace, divided by their",
        "mean squared length",
    ]
    lines += [f"  {style(row.learner).name:<24} k = {row.r:<4} {row.relative_error:.4f}" for row in subspaces]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Learn, draw and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="data", help="folder that holds MNIST/raw")
    arguments = parser.parse_args()
    data = Mnist(arguments.root, None).load()
    assert data.n_train is not None
    table = Table(data.X, data.y, data.scale)
    train, test = np.split(np.arange(data.y.size), [data.n_train])
    shown = [int(test[np.argmax(data.y[test] == digit)]) for digit in DIGITS]
    subspaces = compared(table, train, test)
    with own_settings():
        caption = text(subspaces, [number - data.n_train for number in shown])
        figure = picture(table.rows(np.array(shown)), subspaces)
        for path in write_figure(figure, caption, TARGET, "eigen_digits"):
            print(path)


if __name__ == "__main__":
    main()
