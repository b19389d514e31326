"""Draw which package of budgetreg imports which, as docs/project/layers.svg: ``python scripts/layers.py [--check]``.

The contract in pyproject.toml gives the order of the packages. Each box shows the first sentence of the package's
docstring, and each mark shows an import. With ``--check`` the script writes nothing and fails if the picture is not
current. The same imports give the same bytes.
"""

import argparse
import ast
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "budgetreg"
TARGET = ROOT / "docs" / "project" / "layers.svg"

# Pixels. Cells are as high as the box beside them, and all equally wide.
MARGIN, HEADER, FOOTER, GAP = 16, 96, 44, 6
NAME, TEXT, CELL = 126, 408, 23
LINE, PADDING = 15, 10
LETTERS = 60
"""Most letters in a line of a docstring: that many fit into the box in any usual sans-serif font, even DejaVu's."""

# Blue and vermilion of Okabe and Ito, which differ for every kind of colour vision, as do disc and diamond.
INK, FAINT, EDGE, GRID = "#1b1f24", "#57606a", "#afb8c1", "#d0d7de"
BOX, BASE, OPEN, CLOSED, SELF = "#e8f1f8", "#f1f1f1", "#ffffff", "#eceef0", "#6e7781"
DOWN, UP = "#0072b2", "#d55e00"


@dataclass(frozen=True)
class Package:
    """A package or a single module of budgetreg.

    Attributes
    ----------
    name : str
        Its name inside budgetreg.
    layer : int
        Number of its layer, counted from the top.
    mutual : bool
        Whether packages of its layer may import each other.
    modules : int
        Number of its modules without ``__init__``; 0 for a single module.
    lines : tuple of str
        The first sentence of its docstring, wrapped.
    """

    name: str
    layer: int
    mutual: bool
    modules: int
    lines: tuple[str, ...]

    def may_import(self, other: "Package") -> bool:
        """Whether the contract allows it to import another package."""
        return self.layer < other.layer or (self.layer == other.layer and self.mutual and self != other)

    @property
    def height(self) -> int:
        """Return the height of the row in pixels."""
        return PADDING + LINE * max(len(self.lines), 2)


def packages() -> list[Package]:
    """Read the packages that exist, from top to bottom."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    (layers,) = (contract["layers"] for contract in tools["importlinter"]["contracts"] if contract["id"] == "layers")
    return [
        _package(path, number, ":" in layer)
        for number, layer in enumerate(layers)
        for name in re.findall(r"\w+", layer)
        for path in (ROOT / PACKAGE / name, ROOT / PACKAGE / f"{name}.py")
        if path.exists()
    ]


def _package(path: Path, layer: int, mutual: bool) -> Package:
    source = path / "__init__.py" if path.is_dir() else path
    docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    sentence = re.split(r"(?<=\.)\s", docstring.split("\n\n")[0], maxsplit=1)[0].replace("`", "")
    modules = sum(module.name != "__init__.py" for module in path.rglob("*.py"))
    return Package(path.stem, layer, mutual, modules, tuple(textwrap.wrap(sentence, LETTERS)))


def imports() -> set[tuple[str, str]]:
    """Return pairs of importer and imported package; imports inside functions and for types count too."""
    sys.path.insert(0, str(ROOT))  # this checkout, whatever is installed
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    pairs = {
        (importer.split(".")[1], imported.split(".")[1])
        for importer in graph.modules - {PACKAGE}
        for imported in graph.find_modules_directly_imported_by(importer) - {PACKAGE}
    }
    return {(importer, imported) for importer, imported in pairs if importer != imported}


def draw(rows: Sequence[Package], pairs: set[tuple[str, str]]) -> str:
    """Draw a box for each package, from top to bottom, and beside it a table row with its imports.

    Parameters
    ----------
    rows : sequence of Package
        The packages from top to bottom.
    pairs : set of pair of str
        Importer and imported package.

    Returns
    -------
    str
        SVG.
    """
    tops, columns = [], []
    top, left = MARGIN + HEADER, MARGIN + NAME + TEXT + GAP
    for above, package in zip([rows[0], *rows], rows, strict=False):
        gap = GAP if package.layer != above.layer else 0
        top, left = top + gap, left + gap
        tops.append(top)
        columns.append(left)
        top, left = top + package.height, left + CELL
    width, height = left + MARGIN, top + FOOTER
    body = [
        *_head(rows, columns),
        *(part for package, y in zip(rows, tops, strict=True) for part in _box(package, y)),
        f'<g stroke="{GRID}">',
        *(
            _cell(importer, imported, x, y)
            for importer, y in zip(rows, tops, strict=True)
            for imported, x in zip(rows, columns, strict=True)
        ),
        "</g>",
        *(
            _mark(
                x + CELL / 2,
                y + importer.height / 2,
                importer.may_import(imported),
                f"{importer.name} imports {imported.name}",
            )
            for importer, y in zip(rows, tops, strict=True)
            for imported, x in zip(rows, columns, strict=True)
            if (importer.name, imported.name) in pairs
        ),
        *_legend(columns[0], top + FOOTER / 2),
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            ' font-family="Helvetica, Arial, sans-serif" role="img">',
            "<title>The layers of budgetreg, from top to bottom, and which package imports which</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *body,
            "</svg>\n",
        ]
    )


def _head(rows: Sequence[Package], columns: Sequence[int]) -> Iterator[str]:
    yield _text(MARGIN, MARGIN + 22, "The layers of budgetreg", size=20, weight="bold")
    yield _text(MARGIN, MARGIN + 45, "A package imports only from itself and from packages below it.", size=13)
    yield _text(MARGIN, MARGIN + 64, "Each row of the table shows what the package beside it imports.", size=13)
    for package, x in zip(rows, columns, strict=True):
        place = f'transform="translate({x + CELL / 2 + 4:g} {MARGIN + HEADER - 8}) rotate(-90)"'
        yield f'<text {place} font-size="12" fill="{INK}">{escape(package.name)}</text>'


def _box(package: Package, y: int) -> Iterator[str]:
    fill = BOX if package.modules else BASE
    yield (
        f'<rect x="{MARGIN}" y="{y + 1}" width="{NAME + TEXT}" height="{package.height - 2}" rx="4"'
        f' fill="{fill}" stroke="{EDGE}"/>'
    )
    middle = y + package.height / 2
    size = f"{package.modules} modules" if package.modules > 1 else "one module"
    yield _text(MARGIN + 10, middle - 2, package.name, size=14, weight="bold")
    yield _text(MARGIN + 10, middle + 13, size, size=11, fill=FAINT)
    first = middle + 4 - LINE * (len(package.lines) - 1) / 2
    for number, line in enumerate(package.lines):
        yield _text(MARGIN + NAME, first + LINE * number, line, size=12)


def _cell(importer: Package, imported: Package, x: int, y: int) -> str:
    fill = SELF if importer == imported else OPEN if importer.may_import(imported) else CLOSED
    return f'<rect x="{x}" y="{y}" width="{CELL}" height="{importer.height}" fill="{fill}"/>'


def _mark(x: float, y: float, allowed: bool, tooltip: str) -> str:
    title = f"<title>{escape(tooltip)}</title>"
    if allowed:
        return f'<circle cx="{x:g}" cy="{y:g}" r="6" fill="{DOWN}">{title}</circle>'
    return f'<path d="M{x:g} {y - 8:g}l8 8l-8 8l-8 -8z" fill="{UP}">{title}</path>'


def _legend(x: float, y: float) -> Iterator[str]:
    yield _mark(x + CELL / 2, y, True, "imports")
    yield _text(x + 28, y + 4, "imports", size=12)
    yield _mark(x + 108, y, False, "imports, and should not")
    yield _text(x + 124, y + 4, "imports, and should not", size=12)
    yield f'<rect x="{x + 286}" y="{y - 8}" width="{CELL}" height="16" fill="{CLOSED}" stroke="{GRID}"/>'
    yield _text(x + 316, y + 4, "must stay empty", size=12)


def _text(x: float, y: float, content: str, *, size: int, weight: str = "normal", fill: str = INK) -> str:
    style = f'font-size="{size}" font-weight="{weight}" fill="{fill}"'
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(content, quote=False)}</text>'


def main() -> int:
    """Write the picture, or check it; return the exit code."""
    parser = argparse.ArgumentParser(description="Draw which package imports which, as docs/project/layers.svg.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with code 1 if the picture is not current"
    )
    check = parser.parse_args().check
    content = draw(packages(), imports()).encode()
    name = TARGET.relative_to(ROOT)
    if not check:
        TARGET.write_bytes(content)
        print(name)
    elif not TARGET.is_file() or TARGET.read_bytes() != content:
        print(f"{name} is not current: draw it with python scripts/layers.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
