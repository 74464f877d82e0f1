"""Output: text on a terminal, JSON lines when piped or with --json. Remarks go to standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping

import attrs
import click
from rich.console import Console
from rich.text import Text

# Characters that can move the cursor or change the terminal, except line ends and tabs; and lone surrogates, which
# UTF-8 can't encode.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class _Console(Console):
    """A console that raises BrokenPipeError when its reader exits; rich would exit the process immediately."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - called where the error is handled


@attrs.define
class Output:
    """The output of a command.

    Attributes:
        as_json: whether to write JSON lines.
        console: standard output, for text.
        remarks: standard error: progress, hints, counts.
    """

    as_json: bool
    console: Console = attrs.field(factory=lambda: _Console(highlight=False, emoji=False, soft_wrap=True))
    remarks: Console = attrs.field(
        factory=lambda: _Console(stderr=True, highlight=False, emoji=False, soft_wrap=True, markup=False)
    )

    def line(self, text: str = "", style: str = "") -> None:
        """Write a line of text without interpreting markup."""
        self.console.print(Text(text, style=style))

    def record(self, data: Mapping[str, object]) -> None:
        """Write and flush a JSON line."""
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, default=str)
        # A lone surrogate, which UTF-8 can't encode, is written as its JSON escape.
        sys.stdout.write(text.encode(errors="backslashreplace").decode() + "\n")
        sys.stdout.flush()

    def remark(self, text: str) -> None:
        """Write a line to standard error, unless the output is JSON."""
        if not self.as_json:
            self.remarks.print(text)


def printable(text: str) -> str:
    """Escape control characters, so that a message can't control the terminal."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shown_age(seconds: float) -> str:
    """Format a duration in the largest unit that fits at least twice: ``3 days``."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def make_output(as_json: bool | None) -> Output:
    """Create the output for the value of ``--json/--no-json``; None if it was not given."""
    return Output(as_json=not sys.stdout.isatty() if as_json is None else as_json)


def show_help_alone(context: click.Context) -> None:
    """Print the help of a command group if no subcommand was given."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


#: Adds ``--json/--no-json`` to a command, as the parameter ``as_json``.
json_option = click.option(
    "--json/--no-json",
    "as_json",
    default=None,
    help="Write JSON lines or text; default: text on a terminal, else JSON.",
)
