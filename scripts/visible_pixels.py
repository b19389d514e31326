"""Draw six training images of MNIST 3-vs-5 in full, and with only four random pixels of each visible.

They are the pixels that AER sees with k = 4, as in Figure 1 of Cesa-Bianchi, Shalev-Shwartz & Shamir (2010), but images
and pixels are drawn by us. Both rows come from the accessor, which charges for what it reveals. Writes fig1.png,
fig1.pdf and fig1.txt:

    .venv/bin/python scripts/visible_pixels.py --root data
"""

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from budgetreg.common.streams import generator, subset
from budgetreg.data.dataset import Dataset
from budgetreg.data.mnist import Mnist
from budgetreg.figures.canvas import own_settings, write_figure, write_finding
from budgetreg.figures.captions import flowing
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table

TARGET = Path(__file__).resolve().parent.parent / "results" / "cesa_bianchi_2010"
DIGITS = (3, 5)
K, IMAGES = 4, 6
FINDING = "MNIST 3-vs-5: four random pixels of an image show little of it"
UNSEEN = "#93A4BD"  # a bluish grey, which differs from every pixel


@dataclass(frozen=True)
class Picture:
    """Numbers of training examples (images,), their pixels (images, side, side), and these with NaN for the unseen."""

    order: np.ndarray
    full: np.ndarray
    partial: np.ndarray


def reveal_images(data: Dataset, name: str, k: int) -> Picture:
    """Return some training images in full, and with k random pixels each, drawn without replacement."""
    table = Table(data.X, data.y, data.scale)
    identity = ("picture", 0, name)
    order = generator(*identity, "images").choice(data.n_train or len(data.y), IMAGES, replace=False)
    full = Accessor(table, order[None], 1, budget=table.d).rows(0, IMAGES)[0][0]
    accessor = Accessor(table, order[None], 1, budget=k)
    accessor.open(0, IMAGES)
    pixels = subset(generator(*identity, "pixels"), table.d, k)[:IMAGES]
    partial = np.full_like(full, np.nan)
    np.put_along_axis(partial, pixels, accessor.reveal_block(pixels[None])[0], axis=1)
    square = (IMAGES, math.isqrt(table.d), math.isqrt(table.d))
    return Picture(order, full.reshape(square), partial.reshape(square))


def draw(picture: Picture, k: int) -> Figure:
    """Draw two rows of images, in full and with the visible pixels alone, below what they show."""
    figure = Figure((1.1 * IMAGES, 2.5), layout="constrained")
    axes = figure.subplots(2, IMAGES)
    colours = colormaps["gray"].with_extremes(bad=UNSEEN)
    for row, images in zip(axes, (picture.full, picture.partial), strict=True):
        for ax, image in zip(row, images, strict=True):
            ax.imshow(image, cmap=colours, vmin=0, vmax=picture.full.max(), interpolation="nearest")
            ax.set(xticks=[], yticks=[])
    axes[0, 0].set_ylabel("all pixels")
    axes[1, 0].set_ylabel(f"k = {k}")
    write_finding(figure, FINDING)
    return figure


def text(picture: Picture, name: str, k: int) -> str:
    """Return the caption, which lists the visible pixels of each image."""
    lines = [
        f"fig1: training images of {name}, and the same with {k} random pixels visible",
        "",
        flowing(
            f"Upper row: all {picture.full[0].size} pixels. Lower row: a uniform subset of {k} pixels of each image, "
            "drawn without replacement and revealed by the accessor; what is not seen is bluish grey. A pixel is black "
            f"at 0, white at {picture.full.max():.3g}. Images and pixels are drawn at random, and are not those of the "
            "paper."
        ),
        "",
        "training image: what is seen of it, as (row, column) value",
    ]
    for number, image in zip(picture.order, picture.partial, strict=True):
        places = [f"({row}, {column}) {image[row, column]:.3g}" for row, column in np.argwhere(~np.isnan(image))]
        lines.append(f"  {number}: {', '.join(places)}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Reveal, draw and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="data", help="folder that holds MNIST/raw")
    arguments = parser.parse_args()
    mnist = Mnist(arguments.root, DIGITS)
    with own_settings():
        picture = reveal_images(mnist.load(), mnist.name, K)
        for path in write_figure(draw(picture, K), text(picture, mnist.name, K), TARGET, "fig1"):
            print(path)


if __name__ == "__main__":
    main()
