"""Formulas as MathML, which browsers typeset themselves: pages need no script, no fonts and no network.

docutils translates TeX while the site is built, so a formula with a mistake is a warning, and fails the build.
"""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

_LOG = logging.getLogger(__name__)


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    _write(translator, node, as_block=False)


def _display(translator: HTML5Translator, node: nodes.math_block) -> None:
    _write(translator, node, as_block=True)


def _write(translator: HTML5Translator, node: nodes.math | nodes.math_block, as_block: bool) -> None:
    """Write a formula, or a warning and its TeX if docutils cannot translate it."""
    tex = node.astext()
    try:
        translator.body.append(tex2mathml(tex, as_block=as_block))
    except MathError as error:
        _LOG.warning("formula %r: %s", tex, error, location=node)
        translator.body.append(translator.encode(tex))
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the renderer ``mathml`` to ``html_math_renderer``."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
