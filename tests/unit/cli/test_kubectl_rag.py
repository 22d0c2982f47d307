"""The commands of `kubectl rag` against a cluster that is a dictionary."""

import argparse

from tidegate_cli.kubectl_rag import COMMANDS
from tidegate_cli.rag_grammar import parser


def test_every_command_of_the_grammar_is_carried_out_by_something() -> None:
    commands = next(action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    assert set(commands.choices) == set(COMMANDS)
