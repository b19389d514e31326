"""Draw six training images, threes and fives, and what a learner sees of them when it may look at four pixels of each.

This is Figure 1 of Cesa-Bianchi, Shalev-Shwartz & Shamir (2010), "Efficient learning with partially observed
attributes", with images and pixels of our own draw. Both rows go through the accessor, which charges for what it
reveals. Writes fig1.png, fig1.pdf and fig1.txt:

    .venv/bin/python scripts/four_pixels.py --root data
"""

import argparse
from pathlib import Path

from budgetreg.threads import pin_blas_threads

pin_blas_threads()

import numpy as np  # noqa: E402 - after the threads are pinned
from matplotlib import colormaps  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from budgetreg.accessor import Accessor, Table  # noqa: E402
from budgetreg.data.mnist import Mnist  # noqa: E402
from budgetreg.draws import subset  # noqa: E402
from budgetreg.plots import own_settings, write_figure  # noqa: E402
from budgetreg.streams import generator  # noqa: E402

TARGET = Path(__file__).resolve().parent.parent / "results" / "cesa_bianchi_2010"
IMAGES, K, SIDE = 6, 4, 28
UNSEEN = "#93A4BD"  # a bluish grey, which no pixel has


def seen(table: Table, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the images in full, and with K pixels revealed and NaN elsewhere, both of shape (images, d)."""
    full = Accessor(table, order[None], 1, budget=table.d).rows(0, order.size)[0][0]
    accessor = Accessor(table, order[None], 1, budget=K)
    accessor.open(0, order.size)
    attributes = subset(generator("four_pixels", "pixels"), table.d, K)[: order.size]
    partial = np.full_like(full, np.nan)
    np.put_along_axis(partial, attributes, accessor.reveal_block(attributes[None])[0], axis=1)
    return full, partial


def picture(full: np.ndarray, partial: np.ndarray) -> Figure:
    """Draw the two rows of images."""
    figure = Figure((1.1 * len(full), 2.3), layout="constrained")
    axes = figure.subplots(2, len(full))
    colours = colormaps["gray"].with_extremes(bad=UNSEEN)
    for row, images in zip(axes, (full, partial), strict=True):
        for ax, image in zip(row, images, strict=True):
            ax.imshow(image.reshape(SIDE, SIDE), cmap=colours, vmin=0, vmax=1, interpolation="nearest")
            ax.set_xticks([])
            ax.set_yticks([])
    axes[0, 0].set_ylabel("all pixels")
    axes[1, 0].set_ylabel(f"k = {K}")
    return figure


def text(order: np.ndarray, partial: np.ndarray) -> str:
    """Say what the figure shows, pixel by pixel."""
    lines = [
        f"fig1: six training images of MNIST 3-vs-5, and the same with {K} random pixels visible",
        "",
        f"Upper row: all {SIDE * SIDE} pixels. Lower row: a uniform subset of {K} pixels of each image, drawn without",
        "replacement and revealed by the accessor; what is not seen is bluish grey. A pixel is black at 0,",
        "white at 1.",
        "",
        "training image: what is seen of it, as (row, column) value",
    ]
    for number, image in zip(order, partial, strict=True):
        pixels = np.flatnonzero(~np.isnan(image))
        places = [f"({pixel // SIDE}, {pixel % SIDE}) {image[pixel]:.3g}" for pixel in pixels]
        lines.append(f"  {number}: {', '.join(places)}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Draw the images and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="data", help="folder that holds MNIST/raw")
    parser.add_argument("--out", type=Path, default=TARGET, help="folder of the files")
    arguments = parser.parse_args()
    data = Mnist(arguments.root, (3, 5)).load()
    assert data.n_train is not None
    order = generator("four_pixels", "images").choice(data.n_train, IMAGES, replace=False)
    full, partial = seen(Table(data.X, data.y, data.scale), order)
    with own_settings():
        for path in write_figure(picture(full, partial), text(order, partial), arguments.out, "fig1"):
            print(path)


if __name__ == "__main__":
    main()
