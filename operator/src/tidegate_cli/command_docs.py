"""Describes a command line as Markdown, from its own parser.

Not argparse's help text, whose layout changes between Python versions: the document is derived and
checked, so it must not depend on who derives it.
"""

import argparse
from collections.abc import Iterator


def command_document(parser: argparse.ArgumentParser, *, title: str) -> str:
    """Return a page with a section for each command of `parser`."""
    lines = [f"# {title}", "", "Made from the program's own help by `make generate`.", "", str(parser.description), ""]
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    helps = {choice.dest: choice.help for choice in commands._choices_actions}
    lines += [*_options(parser), ""]
    for name, command in commands.choices.items():
        lines += [f"## {parser.prog} {name}", "", f"{helps[name]}.", "", *_options(command), ""]
    return "\n".join(lines).rstrip() + "\n"


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    shown = [
        action
        for action in parser._actions
        if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    ]
    if not shown:
        return
    yield "| argument | meaning | default |"
    yield "|---|---|---|"
    for action in shown:
        name = (
            ", ".join(action.option_strings) or f"{action.dest.upper()}{' (optional)' if action.nargs == '?' else ''}"
        )
        choices = f" ({', '.join(map(str, action.choices))})" if action.choices else ""
        default = "" if action.default in (None, "", False) or action.default == [] else str(action.default)
        yield f"| `{name}` | {(action.help or '')}{choices} | {default} |"
