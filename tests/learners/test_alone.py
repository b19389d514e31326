"""The algorithms of each paper can be read alone: their modules load few others, and nothing that checks them."""

import subprocess
import sys
from pathlib import Path

import pytest

import budgetreg

ALGORITHMS = Path(budgetreg.__file__).parent / "algorithms"
PAPERS = sorted(
    path.relative_to(ALGORITHMS).with_suffix("").as_posix().replace("/", ".")
    for path in ALGORITHMS.rglob("*.py")
    if "_20" in str(path.relative_to(ALGORITHMS)) and path.stem != "__init__"
)
STORING = ("corrected_moments", "kale_2017", "murata_suzuki_2018", "normal_ml", "zhu_2022")
OURS = ("aemr", "factors", "fixed_subset", "full_rows", "imputation", "streaming_subspaces")
MOST = {**dict.fromkeys(PAPERS, 15), **dict.fromkeys((*OURS, *STORING), 21)}
"""Modules of this package that a module may load; those that store what they see need more."""


@pytest.mark.parametrize("module", MOST)
def test_an_algorithm_loads_few_modules(module):
    code = f"import sys, budgetreg.algorithms.{module}; print(*(m for m in sys.modules if m.startswith('budgetreg')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = done.stdout.split()
    assert f"budgetreg.algorithms.{module}" in loaded
    assert len(loaded) <= MOST[module], loaded
    assert not [name for name in loaded if name.startswith("budgetreg.testing")]
