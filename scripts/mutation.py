"""Mutants: one function of the package behaves differently, wherever in its package it lies and however it is written.

A mutant names its function by package and qualified name, and a change from the original to the replacement. `around`
makes a change of behaviour from outside, which survives any rewriting of the body. `rewrite` replaces one expression
or statement inside; it compares syntax trees, so that layout, comments and position do not matter.
"""

import __future__

import ast
import copy
import functools
import importlib
import inspect
import pkgutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

PACKAGE = "budgetreg"
Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Mutant:
    """One change that breaks a rule.

    Attributes
    ----------
    name : str
        What is wrong, in a few words.
    place : str
        Package and qualified name of the function, method or property: ``protocol:winners``, ``metering:Accessor.pay``.
    change : callable
        Returns the replacement of the original.
    tests : tuple of str
        Tests that are run before the literal test of the protocol, where that one cannot show the difference.
    """

    name: str
    place: str
    change: Change
    tests: tuple[str, ...] = ()


def apply(mutant: Mutant) -> None:
    """Replace what a mutant changes, also where other modules of the package have imported it by name.

    Raises
    ------
    ValueError
        If the place does not exist exactly once, or the change does not apply.
    """
    owner, name = located(mutant)
    original = vars(owner)[name]
    replacement = changed(mutant)
    setattr(owner, name, replacement)
    for module in [module for key, module in sys.modules.items() if key.partition(".")[0] == PACKAGE]:
        for key in [key for key, value in vars(module).items() if value is original]:
            setattr(module, key, replacement)


def changed(mutant: Mutant) -> Any:
    """Return the replacement that a mutant makes; `apply` explains the errors."""
    owner, name = located(mutant)
    try:
        return mutant.change(vars(owner)[name])
    except ValueError as error:
        raise ValueError(f"{mutant.name}: {mutant.place}: {error}") from None


def located(mutant: Mutant) -> tuple[Any, str]:
    """Return the module or class that defines what a mutant changes, and its name there."""
    scope, _, qualified = mutant.place.partition(":")
    *path, name = qualified.split(".")
    owners = []
    for module in _modules(f"{PACKAGE}.{scope}"):
        defined = vars(module).get([*path, name][0])
        if getattr(defined, "__module__", None) == module.__name__:
            owner: Any = module
            for child in path:
                owner = vars(owner)[child]
            if name in vars(owner):
                owners.append(owner)
    if len(owners) != 1:
        raise ValueError(f"{mutant.name}: {PACKAGE}.{scope} defines {qualified} {len(owners)} times, not once")
    return owners[0], name


def around(replacement: Callable[..., Any], *, spare: str = "") -> Change:
    """Return the change to ``replacement(original, *args, **kwargs)``.

    Parameters
    ----------
    replacement : callable
        What happens instead of a call.
    spare : str, optional
        A package whose calls reach the original, such as ``tests`` for a function that the tests use themselves.
    """

    def change(original: Any) -> Any:
        if isinstance(original, property):
            return property(change(original.fget))

        @functools.wraps(original)
        def replaced(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__", "")
            if spare and caller.partition(".")[0] == spare:
                return original(*args, **kwargs)
            return replacement(original, *args, **kwargs)

        return replaced

    return change


def rewrite(before: str, after: str) -> Change:
    """Return the change of one expression or statement in a function's body.

    Parameters
    ----------
    before : str
        Python code that has the structure of exactly one expression or statement of the body. Names ``_1``, ``_2``...
        stand for any expression.
    after : str
        What takes its place, with the same names.
    """

    def change(original: Any) -> Any:
        function: Any = inspect.unwrap(getattr(original, "fget", original))
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        swap = _Swap(_parsed(before), _parsed(after))
        tree = cast(ast.Module, ast.fix_missing_locations(swap.visit(tree)))
        if swap.times != 1:
            raise ValueError(f"occurs {swap.times} times, not once: {before}")
        defined: dict[str, Any] = {}
        # Annotations stay text: names in them may be imported for type checkers alone.
        exec(compile(tree, "<mutant>", "exec", __future__.annotations.compiler_flag), function.__globals__, defined)
        return defined[function.__name__]

    return change


class _Swap(ast.NodeTransformer):
    """Replaces each node of one structure by another, and counts how often."""

    def __init__(self, before: ast.AST, after: ast.AST) -> None:
        self._before, self._after, self.times = before, after, 0

    def visit(self, node: ast.AST) -> ast.AST:
        node = self.generic_visit(node)
        names: dict[str, ast.AST] = {}
        if not _matches(self._before, node, names):
            return node
        self.times += 1
        return _Fill(names).visit(copy.deepcopy(self._after))


def _parsed(code: str) -> ast.AST:
    (statement,) = ast.parse(code).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def _matches(pattern: Any, node: Any, names: dict[str, ast.AST]) -> bool:
    """Compare a pattern with a node, and note what its placeholders stand for."""
    if isinstance(pattern, ast.Name) and pattern.id[0] == "_" and pattern.id[1:].isdigit():
        return isinstance(node, ast.expr) and ast.dump(names.setdefault(pattern.id, node)) == ast.dump(node)
    if isinstance(pattern, list):
        return (
            isinstance(node, list)
            and len(pattern) == len(node)
            and all(_matches(a, b, names) for a, b in zip(pattern, node, strict=True))
        )
    if not isinstance(pattern, ast.AST):
        return bool(pattern == node)
    return type(pattern) is type(node) and all(
        _matches(value, getattr(node, field), names) for field, value in ast.iter_fields(pattern) if field != "ctx"
    )


class _Fill(ast.NodeTransformer):
    """Fills in what placeholders stand for."""

    def __init__(self, names: dict[str, ast.AST]) -> None:
        self._names = names

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Name) and node.id in self._names:
            return self._names[node.id]
        return self.generic_visit(node)


def _modules(name: str) -> Iterator[ModuleType]:
    """Import a package with all that is in it, or a module."""
    module = importlib.import_module(name)
    yield module
    for info in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}."):
        yield importlib.import_module(info.name)
