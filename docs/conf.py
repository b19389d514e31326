"""The documentation's settings: `make docs` builds the site into docs/_build/html, and a warning is an error."""

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
# Help texts are wrapped at this width, whatever the terminal.
os.environ["COLUMNS"] = "100"

project = "budgetreg"
author = "The budgetreg authors"
project_copyright = author
release = version_of("budgetreg")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "gallery_thumbnails",
    "generated_pages",
    "mathml",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_ext", "**/sg_execution_times.rst", "sg_execution_times.rst"]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 4
# Links between pages are checked; a link to another host is never opened by the build.
nitpicky = True
# Only budgetreg's own names are documented here.
nitpick_ignore_regex = [("py:.*", r"(?!budgetreg).*")]

autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    # No page shows how long a script took: it differs from one build to the next.
    "min_reported_time": 1e9,
}

# A prompt is not copied, and output is not copied with its command.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "budgetreg"
html_static_path = ["_static"]
html_css_files = ["budgetreg.css"]
html_math_renderer = "mathml"
html_show_sphinx = False
html_copy_source = False
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
html_theme_options = {
    "logo": {"text": "budgetreg"},
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "navbar_persistent": [],
    "navbar_end": ["search-button", "theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
}


def _only_ours(_: Sphinx, __: str, ___: str, member: object, skip: bool, ____: object) -> bool:
    """Leave out what classes inherit from scikit-learn: its own documentation describes that."""
    return skip or str(getattr(member, "__module__", "")).startswith("sklearn")


def _norms(_: Sphinx, __: str, name: str, ___: object, ____: object, lines: list[str]) -> None:
    """Escape the bars of norms, which the estimators' docstrings share with the comments of ``conf/algo``."""
    if name.startswith("budgetreg.estimators."):
        lines[:] = [line.replace("|", r"\|") for line in lines]


def setup(app: Sphinx) -> None:
    """Choose the members that are documented, before numpydoc reads their docstrings."""
    app.connect("autodoc-skip-member", _only_ours)
    app.connect("autodoc-process-docstring", _norms, priority=100)
