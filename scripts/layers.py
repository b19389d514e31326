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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import grimp
from jinja2 import Template

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "budgetreg"
TARGET = ROOT / "docs" / "project" / "layers.svg"
TEMPLATE = Path(__file__).with_name("layers.svg.jinja")

# Pixels. Cells are as high as the box beside them, and all equally wide.
SIZES = {"margin": 16, "header": 96, "footer": 44, "name_width": 126, "text_width": 408, "cell": 23, "line_height": 15}
GAP, PADDING = 6, 10
LETTERS = 60
"""Most letters in a line of a docstring: that many fit into the box in any usual sans-serif font, even DejaVu's."""


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
    top, left : int
        Where its row and its column begin.
    """

    name: str
    layer: int
    mutual: bool
    modules: int
    lines: tuple[str, ...]
    top: int
    left: int

    def may_import(self, other: "Package") -> bool:
        """Whether the contract allows it to import another package."""
        return self.layer < other.layer or (self.layer == other.layer and self.mutual and self != other)

    @property
    def height(self) -> int:
        """Return the height of the row."""
        return PADDING + SIZES["line_height"] * max(len(self.lines), 2)


def packages() -> Iterator[Package]:
    """Yield the packages that exist, from top to bottom."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    (layers,) = (contract["layers"] for contract in tools["importlinter"]["contracts"] if contract["id"] == "layers")
    top = SIZES["margin"] + SIZES["header"]
    left = SIZES["margin"] + SIZES["name_width"] + SIZES["text_width"] + GAP
    for number, layer in enumerate(layers):
        for name in re.findall(r"\w+", layer):
            for path in (ROOT / PACKAGE / name, ROOT / PACKAGE / f"{name}.py"):
                if path.exists():
                    package = _package(path, number, ":" in layer, top, left)
                    yield package
                    top, left = top + package.height, left + SIZES["cell"]
        top, left = top + GAP, left + GAP


def _package(path: Path, layer: int, mutual: bool, top: int, left: int) -> Package:
    source = path / "__init__.py" if path.is_dir() else path
    docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    sentence = re.split(r"(?<=\.)\s", docstring.split("\n\n")[0], maxsplit=1)[0].replace("`", "")
    modules = sum(module.name != "__init__.py" for module in path.rglob("*.py"))
    return Package(path.stem, layer, mutual, modules, tuple(textwrap.wrap(sentence, LETTERS)), top, left)


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


def draw(drawn: Iterable[Package], pairs: set[tuple[str, str]]) -> str:
    """Return the picture of some packages, from top to bottom, and of their imports, as SVG."""
    rows = list(drawn)
    width = rows[-1].left + SIZES["cell"] + SIZES["margin"]
    height = rows[-1].top + rows[-1].height + SIZES["footer"]
    template = Template(TEMPLATE.read_text(encoding="utf-8"), keep_trailing_newline=True)
    return template.render(packages=rows, imports=pairs, width=width, height=height, **SIZES)


def main() -> int:
    """Write the picture, or check it; return the exit code."""
    parser = argparse.ArgumentParser(description="Draw which package imports which, as docs/project/layers.svg.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the picture is not current")
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
