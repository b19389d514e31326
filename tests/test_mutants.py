"""The table of mutants fits the package as it is; to try them takes long, and is `make mutants`."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def script():
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "scripts" / "mutants.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


mutants = script()


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_another_program(mutant):
    changed = mutants.mutated(mutant)
    compile(changed, mutant.file, "exec")
    assert changed != (ROOT / mutant.file).read_text(encoding="utf-8")
    assert all((ROOT / test.partition("::")[0]).is_file() for test in (mutants.LITERAL, *mutant.tests))


def test_names_tell_mutants_apart():
    names = [mutant.name for mutant in mutants.MUTANTS]
    assert len(set(names)) == len(names)


def test_a_text_that_is_gone_or_repeated_is_an_error(tmp_path):
    mutant = mutants.Mutant("no such thing", "core.py", "a = 1", "a = 2", "nothing")
    (tmp_path / "core.py").write_text("a = 1\n")
    assert mutants.mutated(mutant, tmp_path) == "a = 2\n"
    for text, times in (("b = 1\n", 0), ("a = 1\na = 1\n", 2)):
        (tmp_path / "core.py").write_text(text)
        with pytest.raises(ValueError, match=f"core.py has {times} times, not once, 'a = 1'"):
            mutants.mutated(mutant, tmp_path)
