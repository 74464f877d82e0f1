"""The question that a destructive command asks before it starts."""

from __future__ import annotations

import sys

import click

#: Adds ``--yes`` to a command, as the parameter ``yes``.
yes_option = click.option("--yes", is_flag=True, help="Don't ask; required if standard input is not a terminal.")


def agreed(question: str, yes: bool) -> bool:
    """Return whether ``--yes`` was given, or the question is answered with yes on the terminal.

    Raises:
        click.UsageError: standard input is not a terminal, and ``--yes`` was not given.
    """
    require_terminal(yes)
    return yes or click.confirm(question, err=True)


def require_terminal(yes: bool) -> None:
    """Check that a question can be asked, unless ``--yes`` was given. Raises click.UsageError."""
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("this deletes messages or moves them; give --yes if that is meant")
