"""A figure of images: some training examples in full, and with only k pixels of each visible.

It follows Figure 1 of Cesa-Bianchi, Shalev-Shwartz & Shamir (2010), with images and pixels drawn by us. Both rows come
from the accessor, which charges for what it reveals.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from budgetreg.data.registry import load
from budgetreg.errors import ConfigError
from budgetreg.figures.canvas import own_settings, write_figure, write_finding
from budgetreg.figures.captions import flowing
from budgetreg.figures.library import Figure, colormaps
from budgetreg.files import Damaged
from budgetreg.metering.accessor import Accessor
from budgetreg.metering.table import Table
from budgetreg.protocol.plan import Plan, make_plan
from budgetreg.reproduce.merged import CellResults, manifest_of
from budgetreg.reproduce.recipes import Recipe
from budgetreg.runs.manifest import identity_of, provenance, read_merged_manifest, write_manifest
from budgetreg.streams import generator, subset

IMAGES = 6
_UNSEEN = "#93A4BD"  # a bluish grey, which differs from every pixel


@dataclass(frozen=True)
class Picture:
    """The images of the figure.

    Attributes
    ----------
    order : ndarray of int, shape (images,)
        Numbers of the training examples.
    full : ndarray of float, shape (images, side, side)
    partial : ndarray of float, shape (images, side, side)
        The same, with NaN for the pixels that were not seen.
    k : int
        Pixels seen of each image.
    """

    order: np.ndarray
    full: np.ndarray
    partial: np.ndarray
    k: int


def reproduce_picture(recipe: Recipe, folder: Path, name: str) -> None:
    """Draw the images of a recipe, unless the existing ones have the same configuration.

    Parameters
    ----------
    recipe : Recipe
        A recipe with a single cell; no learner is run.
    folder : Path
        Where ``<name>.png``, ``<name>.pdf``, ``<name>.txt`` and ``manifest.json`` go.
    name : str

    Raises
    ------
    ConfigError
        If the attributes of the data set are not the pixels of square images.
    UserError
        If data are missing, or a file cannot be read or written.
    """
    (cell,) = recipe.cells
    if _current(folder, name, cell.digest):
        return
    plan = make_plan(cell.config)
    with own_settings():
        picture = reveal_images(plan)
        write_figure(draw(picture, recipe.drawing.finding), text(name, plan.dataset, picture), folder, name)
    config, source = plan.config.recorded(), {**provenance(), "earlier": []}
    results = CellResults(config, identity_of(plan)["data"], source, tables={})
    # Last, as a manifest means that the figure is complete.
    write_manifest(folder, manifest_of(recipe, config, {cell.name: results}, {}), {})


def reveal_images(plan: Plan) -> Picture:
    """Return some training images in full, and with k random pixels each, drawn without replacement.

    Raises
    ------
    ConfigError
        If the attributes of the data set are not the pixels of square images.
    """
    data = load(plan.config.dataset, plan.config.seed, 0)
    side = math.isqrt(plan.d)
    if side * side != plan.d:
        raise ConfigError(f"figure.kind: {plan.d} attributes do not form a square image")
    identity = ("picture", plan.config.seed, plan.dataset)
    order = generator(*identity, "images").choice(plan.n_train, min(IMAGES, plan.n_train), replace=False)
    table = Table(data.X, data.y, data.scale)
    full = Accessor(table, order[None], 1, budget=plan.d).rows(0, order.size)[0][0]
    accessor = Accessor(table, order[None], 1, budget=plan.k)
    accessor.open(0, order.size)
    attributes = subset(generator(*identity, "pixels"), plan.d, plan.k)[: order.size]
    partial = np.full_like(full, np.nan)
    np.put_along_axis(partial, attributes, accessor.reveal_block(attributes[None])[0], axis=1)
    square = (order.size, side, side)
    return Picture(order, full.reshape(square), partial.reshape(square), plan.k)


def draw(picture: Picture, finding: str = "") -> Figure:
    """Draw two rows of images, in full and with the visible pixels alone, below what they show."""
    figure = Figure((1.1 * len(picture.order), 2.5 if finding else 2.3), layout="constrained")
    axes = figure.subplots(2, len(picture.order), squeeze=False)
    colours = colormaps["gray"].with_extremes(bad=_UNSEEN)
    for row, images in zip(axes, (picture.full, picture.partial), strict=True):
        for ax, image in zip(row, images, strict=True):
            ax.imshow(image, cmap=colours, vmin=0, vmax=picture.full.max(), interpolation="nearest")
            ax.set(xticks=[], yticks=[])
    axes[0, 0].set_ylabel("all pixels")
    axes[1, 0].set_ylabel(f"k = {picture.k}")
    write_finding(figure, finding)
    return figure


def text(name: str, dataset: str, picture: Picture) -> str:
    """Return the caption, which lists the visible pixels of each image."""
    pixels = picture.full[0].size
    lines = [
        f"{name}: training images of {dataset}, and the same with {picture.k} random pixels visible",
        "",
        flowing(
            f"Upper row: all {pixels} pixels. Lower row: a uniform subset of {picture.k} pixels of each image, drawn "
            "without replacement and revealed by the accessor; what is not seen is bluish grey. A pixel is black at 0, "
            f"white at {picture.full.max():.3g}."
        ),
        "",
        "training image: what is seen of it, as (row, column) value",
    ]
    for number, image in zip(picture.order, picture.partial, strict=True):
        places = [f"({row}, {column}) {image[row, column]:.3g}" for row, column in np.argwhere(~np.isnan(image))]
        lines.append(f"  {number}: {', '.join(places)}")
    return "\n".join(lines) + "\n"


def _current(folder: Path, name: str, digest: str) -> bool:
    if not all((folder / f"{name}.{ending}").is_file() for ending in ("png", "pdf", "txt")):
        return False
    try:
        manifest = read_merged_manifest(folder)
    except Damaged:
        return False
    return manifest is not None and [cell["identity_digest"] for cell in manifest["cells"]] == [digest]
