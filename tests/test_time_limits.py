"""No test may wait for ever: every call that waits for a process has a time limit."""

import ast
from pathlib import Path

import pytest

FILES = sorted(Path(__file__).parent.rglob("*.py"))


def endless(tree: ast.AST) -> list[int]:
    """Return the lines of calls that wait for a process without a limit."""
    lines = []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if not isinstance(call.func, ast.Attribute):
            continue
        limited = any(keyword.arg == "timeout" for keyword in call.keywords)
        of_module = isinstance(call.func.value, ast.Name) and call.func.value.id == "subprocess"
        if of_module and call.func.attr in ("run", "call", "check_call", "check_output") and not limited:
            lines.append(call.lineno)
        if call.func.attr in ("wait", "communicate") and not limited and not call.args:
            lines.append(call.lineno)
    return lines


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_process_has_a_time_limit(file: Path) -> None:
    assert endless(ast.parse(file.read_text(encoding="utf-8"))) == []


def test_a_call_without_a_limit_is_found() -> None:
    assert endless(ast.parse("subprocess.run([])\nprocess.wait()\nprocess.wait(3)\nsubprocess.run([], timeout=3)")) == [
        1,
        2,
    ]
