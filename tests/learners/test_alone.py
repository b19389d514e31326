"""The algorithms of each paper can be read alone: their modules load few others, and nothing that checks them."""

import subprocess
import sys
from pathlib import Path

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


_CODE = """
import sys
from importlib import import_module
for module in sys.argv[1:]:
    for name in [name for name in sys.modules if name.startswith("budgetreg")]:
        del sys.modules[name]
    import_module(f"budgetreg.algorithms.{module}")
    print(*(name for name in sys.modules if name.startswith("budgetreg")))
"""


def test_an_algorithm_loads_few_modules():
    done = subprocess.run([sys.executable, "-c", _CODE, *MOST], capture_output=True, text=True, timeout=120, check=True)
    for (module, most), line in zip(MOST.items(), done.stdout.splitlines(), strict=True):
        loaded = line.split()
        assert f"budgetreg.algorithms.{module}" in loaded
        assert len(loaded) <= most, loaded
        assert not [name for name in loaded if name.startswith("budgetreg.testing")]
