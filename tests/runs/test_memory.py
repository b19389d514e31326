"""Memory that was freed is used again, in a process and in those that it starts."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = 100 * 4 * 2**22 // 2**12
"""Pages of all arrays that `AGAIN` makes, of which four are there at the same time."""
AGAIN = """
import resource
import numpy as np

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

before = faults()
for _ in range(100):
    [np.ones(2**19) for _ in range(4)]  # 4 MB each
print(faults() - before)
"""
KEPT = "from budgetreg.runs.workers import keep_freed_memory; keep_freed_memory();"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries' malloc is left alone")
@pytest.mark.parametrize(
    "program",
    [
        f"{KEPT} exec({AGAIN!r})",
        f"{KEPT} import subprocess, sys; subprocess.run([sys.executable, '-c', {AGAIN!r}], timeout=60)",
    ],
    ids=["this process", "its child"],
)
def test_freed_arrays_are_used_again(program):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=60, check=True)
    assert int(printed.stdout) < PAGES / 10
