"""Composing configurations with Hydra, from our folder and those that other packages bring, and the words for it.

For library calls and recipes, `Composer` composes a configuration in a few milliseconds. Behind ``budgetreg run``,
Hydra calls a task for each configuration; only its public parts are used: the compose API, the loader that it sets up,
and its sweepers, launchers and shell completions, which are plugins.

What Hydra raises becomes one line: what is wrong, and the choices or the nearest key. Names and paths are read as they
were typed, and words that are printed can be pasted into a shell.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import cache, lru_cache
from glob import iglob
from itertools import product
from pathlib import Path
from typing import Any, cast

from hydra import compose, initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Quote, QuotedString
from hydra.core.plugins import Plugins
from hydra.core.utils import run_job
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.experimental.callback import Callback
from hydra.plugins.completion_plugin import CompletionPlugin
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from budgetreg.common.errors import ConfigError, nearest
from budgetreg.config import catalogue
from budgetreg.config.nested import flatten, put
from budgetreg.config.options import FORMER, Option

_UNKNOWN_KEY = re.compile(r"Could not (?:override|delete from config\.|append to config\.) ?'([^']+)'")
_SWEEP_WITHOUT_M = re.compile(r"Ambiguous value for argument '([^']+)'")
# Text in quotes, or a word that stands alone: only such words can be numbers, or need no quotes but for their letters.
_PART = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|"""
    r"""(?<![^,\[])(?P<before>\s*)(?P<word>[\w./+\x80-\U0010ffff-]+)(?=\s*(?:[,\]]|$))""",
    re.DOTALL,
)
_PLAIN = re.compile(r"[A-Za-z_/][\w./-]*|[1-9][0-9]*", re.ASCII)  # what neither Hydra nor a shell reads in another way
_IN_DOUBLE_QUOTES = re.compile(r"""(?:[^"$`!\\]|\\(?!["$`\\\n]))*""")

_CONFIG = "config"  # the file of the conf folder with which every composition begins
Task = Callable[[DictConfig], Any]


class ExtensionSearchPath(SearchPathPlugin):
    """Makes Hydra find the configuration files of other packages, after our own."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Append their folders."""
        for folder in catalogue.added_conf_dirs():
            search_path.append("budgetreg-extension", str(folder))


@contextmanager
def composing() -> Iterator[ConfigLoader]:
    """Let `hydra.compose` work in the block, and yield the loader that it uses."""
    Plugins.instance().register(ExtensionSearchPath)  # doing so again changes nothing
    with initialize_config_dir(str(catalogue.conf_dir()), job_name="run", version_base="1.3"):
        yield GlobalHydra.instance().config_loader()


def _from_files(words: Sequence[str], *, hydra: bool = False) -> DictConfig:
    """Return what Hydra composes of some overrides, with its own settings if asked for; do not change it."""
    return _composed_once(tuple(words), hydra, tuple(_versions()))


@lru_cache(maxsize=32)
def _composed_once(words: tuple[str, ...], hydra: bool, versions: tuple[tuple[str, int, int], ...]) -> DictConfig:
    """Return what Hydra makes of these versions of the files, which takes a tenth of a second."""
    with composing():
        return compose(_CONFIG, list(words), return_hydra_config=hydra)


def _versions() -> Iterator[tuple[str, int, int]]:
    """Yield path, time of the last change, and size of each configuration file."""
    for folder in catalogue.conf_dirs():
        for name in iglob("**/*.yaml", root_dir=folder, recursive=True):
            with suppress(OSError):  # a link of an editor that leads nowhere
                state = (folder / name).stat()
                yield str(folder / name), state.st_mtime_ns, state.st_size


class Composer:
    """Composes configurations: those of a command or a call, and the cells of a recipe, for which Hydra runs once.

    A cell is what Hydra composes of ``experiment=<name>`` and the choices of the cell. Hydra is slow, so it composes
    the recipe once. Where a cell chooses another file of a group, such as another learner, that file is merged with
    what the recipe sets in the group, as Hydra does. Only files that make use of other files are left to Hydra.

    Parameters
    ----------
    name : str, optional
        The recipe, such as ``hazan_koren_2012/fig1``; none by default.

    Attributes
    ----------
    base : DictConfig
        What Hydra composed without choices, with its own settings under ``hydra``.
    """

    def __init__(self, name: str | None = None) -> None:
        self._words = [] if name is None else [f"experiment={name}"]
        with composition_explained(self._words):
            self.base = _from_files(self._words, hydra=True)
        self._recipe = _parsed("{}" if name is None else catalogue.text("experiment", name))
        ours = OmegaConf.masked_copy(self.base, [str(key) for key in self.base if key != "hydra"])
        self._bases: dict[tuple[tuple[str, str], ...], Any] = {(): OmegaConf.to_container(ours)}

    def __call__(self, choice: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the configuration of a cell.

        Parameters
        ----------
        choice : mapping of str to Any
            Groups with the names of their options, and dotted keys with values. A key that does not exist is added:
            `budgetreg.protocol.configuration.validate` decides whether it may be there.

        Raises
        ------
        ConfigError
            If Hydra cannot compose it.
        """
        groups = catalogue.groups()
        files = tuple((key, str(value)) for key, value in choice.items() if key in groups)
        if files not in self._bases:
            self._bases[files] = self._chosen(dict(files))
        base = self._bases[files]
        values = {key: value for key, value in choice.items() if key not in groups}
        # Setting such a key is more than replacing one value.
        special = any("[" in key or isinstance(value, dict) or _is_open(value) for key, value in values.items())
        if special or _is_open(base):
            config = OmegaConf.create(base)
            for key, value in values.items():
                with composition_explained([f"{key}={value}"]):
                    OmegaConf.update(config, key, value, force_add=True)
            return config
        tree = deepcopy(base)
        for key, value in values.items():
            put(tree, key, value)
        return tree

    def _chosen(self, files: Mapping[str, str]) -> Any:
        """Return the recipe with other files of some groups, as plain containers."""
        known = all(catalogue.has_option(group, option) for group, option in files.items())  # else Hydra raises
        texts = {group: catalogue.text(group, option) for group, option in files.items()} if known else {}
        if not known or not _overrides_only(self._recipe) or not all(map(_stands_alone, texts.values())):
            words = [*self._words, *(f"{group}={option}" for group, option in files.items())]
            with composition_explained(words):
                return OmegaConf.to_container(_from_files(words))
        merged = {group: OmegaConf.merge(_parsed(text), self._recipe.get(group) or {}) for group, text in texts.items()}
        return {**self._bases[()], **{group: OmegaConf.to_container(section) for group, section in merged.items()}}


def _is_open(node: Any) -> bool:
    """Whether a tree refers to other keys or lacks a value, which only OmegaConf finds out."""
    written = str(node)
    return "${" in written or "???" in written


@cache
def _parsed(text: str) -> DictConfig:
    """Return the content of a configuration file; do not change it."""
    content = OmegaConf.create(text)
    assert isinstance(content, DictConfig)
    return content


def _stands_alone(text: str) -> bool:
    """Whether a file of a group is that group's section, with nothing taken from other files."""
    return "@package" not in text and "defaults" not in _parsed(text)


def _overrides_only(recipe: DictConfig) -> bool:
    """Whether a recipe takes nothing from other files but the options of groups."""
    entries = recipe.get("defaults", [])
    return all(isinstance(entry, DictConfig) and str(*entry).startswith("override /") for entry in entries)


def run_one(words: Sequence[str], task: Task) -> Any:
    """Call a task for the configuration that some overrides make, and return what it returns.

    Parameters
    ----------
    words : sequence of str
        Overrides in Hydra's grammar.
    task : callable
        Called with the configuration, while `HydraConfig` holds Hydra's own part of it.

    Raises
    ------
    Exception
        Whatever Hydra raises.
    """
    with composing() as loader:
        config, context = _loaded(loader, words, RunMode.RUN)
        job = run_job(task, config, job_dir_key="hydra.run.dir", job_subdir_key=None, hydra_context=context)
    return job.return_value  # or raises what the task raised


def run_sweep(words: Sequence[str], task: Task, folder: Path) -> Iterator[Any]:
    """Call a task for each configuration of a sweep, perhaps in other processes, and yield what it returns.

    Parameters
    ----------
    words, task
        As for `run_one`; words such as ``k=2,4`` stand for several configurations, and a recipe among them may ask for
        a sweep, too.
    folder : Path
        Where Hydra and its launchers leave files.

    Raises
    ------
    Exception
        Whatever Hydra and its plugins raise.
    """
    with composing() as loader:
        config, context = _loaded(loader, [f"hydra.sweep.dir={for_hydra(str(folder))}", *words], RunMode.MULTIRUN)
        loader.load_sweep_config = _each_cell_once(loader.load_sweep_config)  # type: ignore[method-assign]
        plugins = Plugins.instance()
        sweeper = plugins.instantiate_sweeper(config=config, hydra_context=context, task_function=task)
        batches: Any = sweeper.sweep(arguments=list(config.hydra.overrides.task))
    for batch in batches:
        yield from (job.return_value for job in batch)


def _loaded(loader: ConfigLoader, words: Sequence[str], mode: RunMode) -> tuple[DictConfig, HydraContext]:
    config = loader.load_configuration(_CONFIG, [*words, f"hydra.mode={mode.name}"], mode)
    return config, HydraContext(loader, callbacks=cast(Any, Callback()))  # callbacks that do nothing


def _each_cell_once(compose: Callable[..., DictConfig]) -> Callable[..., DictConfig]:
    """Return a function that composes each cell of a sweep once: Hydra does it to validate it, and again to run it."""
    validated: dict[tuple[str, ...], DictConfig] = {}

    def composed(master_config: DictConfig, sweep_overrides: Sequence[str]) -> DictConfig:
        cell = tuple(sweep_overrides)
        if cell in validated:
            return validated.pop(cell)  # the job changes it
        validated[cell] = compose(master_config, list(sweep_overrides))
        return validated[cell]

    return composed


def show(words: Sequence[str]) -> None:
    """Print the configuration that some overrides in Hydra's grammar make, without Hydra's own part."""
    print(OmegaConf.to_yaml(_from_files(words)), end="")


def complete(words: Sequence[str]) -> None:
    """Answer a shell: print the script that installs completion, or what the line in COMP_LINE can become.

    Parameters
    ----------
    words : sequence of str
        What is asked for, install, uninstall or query, and the name of the shell: ``install=bash``.

    Raises
    ------
    ConfigError
        If this cannot be asked for, or Hydra knows no such shell.
    """
    action, _, shell = " ".join(words).partition("=")
    if action not in ("install", "uninstall", "query") or not shell:
        raise ConfigError("-sc needs install=SHELL or uninstall=SHELL, such as install=bash (see budgetreg run --help)")
    with composing() as loader:
        discovered: Any = Plugins.instance().discover(CompletionPlugin)
        plugins = {plugin.provides(): plugin for plugin in discovered}
        if shell not in plugins:
            raise ConfigError(f"-sc {action}={shell}: no such shell; choices: {', '.join(sorted(plugins))}")
        plugin = plugins[shell](loader)
        plugin.query(_CONFIG) if action == "query" else getattr(plugin, action)()


def asks_for_sweep(words: Sequence[str]) -> bool:
    """Return whether a recipe among some words, or a word, asks for a sweep; not if they cannot be composed."""
    if not any(word.lstrip("+").startswith(("experiment", "hydra.mode")) for word in words):
        return False  # without the tenth of a second that composing takes
    try:
        with composing() as loader:
            config = loader.load_configuration(_CONFIG, list(words), RunMode.MULTIRUN, validate_sweep_overrides=False)
    except Exception:  # whatever is wrong is raised again when the configuration is composed to be run
        return False
    return bool(config.hydra.mode == RunMode.MULTIRUN)


def check_words(words: list[str]) -> None:
    """Refuse a list or a mapping where a group's option must be named, for which Hydra has no message.

    Raises
    ------
    ConfigError
        If an override of a group is a list or a mapping, or has one among the values of a sweep.
    """
    parser = OverridesParser.create()
    for word in words:
        group = word.partition("=")[0].lstrip("+")
        if group not in catalogue.groups() and not group.startswith("hydra/"):
            continue
        try:
            value = parser.parse_override(word).value()
        except HydraException:  # no override, which Hydra reports later
            continue
        values = value.list if isinstance(value, ChoiceSweep) else [value]
        if any(isinstance(value, list | dict) for value in values):
            choices = f"; choices: {', '.join(catalogue.options(group))}" if group in catalogue.groups() else ""
            raise ConfigError(f"{word}: must be the name of one {group.rpartition('/')[2]}{choices}")


@contextmanager
def composition_explained(words: list[str]) -> Iterator[None]:
    """Turn an error of Hydra, OmegaConf or YAML in the block into a `ConfigError` of one line.

    Parameters
    ----------
    words : list of str
        As for `as_config_error`.

    Raises
    ------
    ConfigError
        If the configuration cannot be composed.
    """
    try:
        yield
    except (HydraException, OmegaConfBaseException, YAMLError) as error:
        raise as_config_error(error, words) from error


def as_config_error(error: Exception, words: list[str]) -> ConfigError:
    """Return an error of Hydra or OmegaConf as one line.

    Parameters
    ----------
    error : Exception
        What Hydra raised while it composed the configuration.
    words : list of str
        The command line. Its choices (``algo=ridge``) decide which keys exist.
    """
    if "Cannot merge DictConfig with ListConfig" in f"{error} {error.__cause__}":  # whichever of the two was given
        merged = re.search(r"Error merging override (.*)", str(error))
        name, _, value = (merged[1] if merged else words[0]).partition("=")
        needed = "keys with values, not a list" if value.startswith("[") else "a list, not keys with values"
        return ConfigError(f"{name}: must be {needed}")
    if isinstance(error, OverrideParseException):
        name, _, value = str(error.override).partition("=")
        hint = f"; put special characters in quotes: {pasted(name, _meant(value))}" if value else ""
        return ConfigError(f"{error.override}: is not KEY=VALUE: {_first_line(error)}{hint}")
    if isinstance(error, YAMLError):
        return ConfigError(" ".join(str(error).split()))
    if isinstance(error, MissingConfigException) and "/" in str(error.missing_cfg_file):
        return _unknown_option(str(error.missing_cfg_file), error.options or ())
    sweep = _SWEEP_WITHOUT_M.search(str(error))
    if sweep is not None:
        brackets = "" if sweep[1].partition("=")[0] in catalogue.groups() else ", brackets (a list) or quotes (a text)"
        return ConfigError(f"{sweep[1]}: several values need run -m (a sweep){brackets}")
    key = _UNKNOWN_KEY.search(str(error))
    known = _keys(words) if key is not None else []
    if key is not None and key[1] not in known:
        return _unknown_key(key[1], known)
    if not isinstance(error, HydraException | OmegaConfBaseException | ValueError):
        # No message for users: only settings of Hydra itself can be the cause.
        suspects = [word for word in words if word.lstrip("+~").startswith("hydra")] or words
        return ConfigError(f"{' '.join(suspects)}: cannot be used ({type(error).__name__}: {_first_line(error)})")
    cause = f": {_first_line(error.__cause__)}" if error.__cause__ is not None else ""
    return ConfigError(f"{_first_line(error).rstrip('.')}{cause}")


def _meant(value: str) -> str | list[str]:
    """Return the text, or the list of texts, that somebody meant with a value that cannot be read."""
    if value.startswith("[") and value.endswith("]"):
        return [_bare(text.strip()) for text in value[1:-1].split(",") if text.strip()]
    return _bare(value)


def _bare(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _unknown_option(path: str, offered: Iterable[str]) -> ConfigError:
    top, _, rest = path.partition("/")
    # The name of a recipe contains a slash, and Hydra lists only the choices on one level.
    group, option = (top, rest) if top in catalogue.groups() else path.rpartition("/")[::2]
    choices = catalogue.options(group) if group in catalogue.groups() else sorted(offered)
    if option in FORMER.get(group, {}):
        return ConfigError(f"{group}={option}: is now {group}={FORMER[group][option]}")
    kind, hint = group.rpartition("/")[2], nearest(option, choices)
    return ConfigError(f"{group}={option}: no such {kind}{hint}; choices: {', '.join(choices)}")


def _unknown_key(key: str, known: list[str]) -> ConfigError:
    level, _, last = key.rpartition(".")
    siblings = [name for name in known if level and name.rpartition(".")[0] == level]
    # On the top level all keys are candidates: `split=even` without its group is near `algo.split`, and `unit` is the
    # last word of `dataset.unit`.
    within = [name for name in known if not level and name.rpartition(".")[2] == key]
    hint = (
        nearest(last, [name.rpartition(".")[2] for name in siblings], f"{level}.")
        if siblings
        else nearest(within[0] if within else key, known)
    )
    keys = siblings or [name for name in known if "." not in name]
    return ConfigError(f"{key}: no such key{hint}; keys: {', '.join(keys)}")


def _keys(words: list[str]) -> list[str]:
    """Return all keys of the configuration that has the groups chosen on the command line; sweeps are left out."""
    chosen = [word for word in words if word.partition("=")[0] in catalogue.groups() and "," not in word]
    try:
        config = _from_files(chosen)
    except (HydraException, OmegaConfBaseException, YAMLError):
        config = _from_files([])
    content: Any = OmegaConf.to_container(config)
    return list(dict.fromkeys([*content, *flatten(content)]))  # a plain key is in both


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("Error parsing override")] or lines
    return lines[0] if lines else type(error).__name__


def combinations(
    sweep: Mapping[Any, Any], protocols: Sequence[str], omit: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return all combinations of a sweep and of presets except those that a recipe leaves out."""
    axes = []
    for override in OverridesParser.create().parse_overrides([f"{key}={value}" for key, value in sweep.items()]):
        values = override.sweep_iterator() if override.is_sweep_override() else [override.value()]
        axes.append([(override.key_or_group, value) for value in values])
    if protocols:
        axes.append([("protocol", protocol) for protocol in protocols])
    keys = {axis[0][0] for axis in axes}
    for condition in omit:
        if not isinstance(condition, dict) or not condition.keys() <= keys:
            raise ConfigError(f"omit: each must have keys of the sweep ({', '.join(sorted(keys))})")
    return [choice for choice in map(dict, product(*axes)) if not left_out(choice, omit)]


def left_out(choice: Mapping[str, Any], omit: Any) -> bool:
    """Whether a recipe leaves out a combination of its sweep.

    Parameters
    ----------
    choice : mapping
        Keys of the sweep, with the values of this combination.
    omit : list of mapping
        The recipe leaves out a combination if it has, for all keys of one of these mappings, the value there or one of
        the values there.
    """

    def holds(key: str, values: Any) -> bool:
        return key in choice and choice[key] in (values if isinstance(values, list) else [values])

    return any(all(holds(key, values) for key, values in keys.items()) for keys in omit)


def as_typed(word: str, texts: Mapping[str, Option]) -> str:
    """Return an override in which names and paths are the text that was typed, whatever Hydra would read.

    Parameters
    ----------
    word : str
        What the user wrote, such as ``dataset.drop=[1_1]``, which Hydra reads as 11, or ``dataset.target=Größe``, which
        it cannot read.
    texts : mapping of str to Option
        The options whose values are text, by key.

    Examples
    --------
    >>> from budgetreg.config.options import NAME, Option
    >>> as_typed("out=2024_01_15", {"out": Option("a folder", NAME)})
    "out='2024_01_15'"
    """
    key, equals, value = word.partition("=")
    option = texts.get(key.lstrip("+"))
    if option is None or not equals:
        return word
    choice = re.fullmatch(r"choice\((.*)\)", value, re.DOTALL)
    if choice:  # whose texts lose their quotes in Hydra
        value = choice[1]
    elif re.match(r"\w+\(", value):  # a function of numbers
        return word

    def quoted(part: re.Match[str]) -> str:
        typed = part["word"]
        if typed is None:  # in quotes already
            return part[0]
        try:
            read = OverridesParser.create().parse_rule(typed, "primitive")
        except HydraException:  # its grammar has only the letters of ASCII
            return f"{part['before']}'{typed}'"
        as_it_is = read is None or str(read) == typed
        if isinstance(read, str) or (as_it_is and (option.must.accepts(read) or option.must.accepts([read]))):
            return part[0]
        return f"{part['before']}'{typed}'"

    return f"{key}={_PART.sub(quoted, value)}"


def pasted(key: str, value: str | Sequence[str]) -> str:
    r"""Return a word that gives a key a text, or a list of texts, if it is pasted into a shell.

    Examples
    --------
    >>> print(pasted("dataset.drop", ["id", "Cement (kg/m3)"]))
    "dataset.drop=[id,'Cement (kg/m3)']"
    >>> print(pasted("dataset.path", "it's/t.csv"))
    "dataset.path='it\'s/t.csv'"
    """
    words = []
    for quote in Quote:
        texts = [for_hydra(text, quote) for text in ([value] if isinstance(value, str) else value)]
        words.append(f"{key}={texts[0] if isinstance(value, str) else '[' + ','.join(texts) + ']'}")
    return min((_for_shell(word) for word in words), key=len)


def for_hydra(text: str, quote: Quote = Quote.single) -> str:
    """Return text in Hydra's grammar."""
    if _PLAIN.fullmatch(text) and text.lower() not in ("true", "false", "null", "nan", "inf"):
        return text
    escaped = re.sub(r"(\\*)\$\{", r"\1\1\\${", text)  # no interpolation
    return QuotedString(escaped, quote).with_quotes()


def _for_shell(word: str) -> str:
    if re.fullmatch(r"[\w.,=\[\]/-]+", word, re.ASCII):
        return word
    return f'"{word}"' if "'" in word and _IN_DOUBLE_QUOTES.fullmatch(word) else shlex.quote(word)
