"""The reference of the commands, from the parsers that read them."""

from budgetreg.cli.app import COMMANDS
from budgetreg.cli.arguments import STUDY, parser_of
from markup import block, escaped


def commands(_: str) -> str:
    """Return a section for each command: what it does, and its help."""
    sections = []
    for name, (_module, _function, what) in COMMANDS.items():
        sections += [f"## budgetreg {name}", _sentence(what), _help(name)]
        for part, described in STUDY.items() if name == "study" else ():
            sections += [f"### budgetreg {name} {part}", _sentence(described.headline), _help(f"{name} {part}")]
    return "\n\n".join(sections)


def _sentence(what: str) -> str:
    return escaped(f"{what[0].upper()}{what[1:]}.")


def _help(command: str) -> str:
    return block(parser_of(command).format_help())
