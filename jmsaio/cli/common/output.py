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

# What could move the cursor or change the terminal, except line ends and tabs; and lone surrogates, which UTF-8 lacks.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class _Console(Console):
    """A console whose reader's end is an error like any other: rich would leave the process on the spot."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - called where the error is handled


@attrs.define
class Output:
    """One command's output.

    Attributes:
        as_json: write JSON lines.
        console: standard output, for text.
        remarks: standard error: progress, hints, counts.
    """

    as_json: bool
    console: Console = attrs.field(factory=lambda: _Console(highlight=False, emoji=False, soft_wrap=True))
    remarks: Console = attrs.field(
        factory=lambda: _Console(stderr=True, highlight=False, emoji=False, soft_wrap=True, markup=False)
    )

    def line(self, text: str = "", style: str = "") -> None:
        """A line of text; nothing in it is markup."""
        self.console.print(Text(text, style=style))

    def record(self, data: Mapping[str, object]) -> None:
        """A JSON line, written out at once so that a pipe's reader sees it."""
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, default=str)
        # A lone surrogate, which JSON can hold and UTF-8 can't, stays the escape that JSON has for it.
        sys.stdout.write(text.encode(errors="backslashreplace").decode() + "\n")
        sys.stdout.flush()

    def remark(self, text: str) -> None:
        """A line beside the output, left out when the output is for a program."""
        if not self.as_json:
            self.remarks.print(text)


def printable(text: str) -> str:
    """``text`` with control characters made visible: a message must not drive the terminal."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shown_age(seconds: float) -> str:
    """A duration for people, in its largest unit that fits twice: ``3 days``."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def make_output(as_json: bool | None) -> Output:
    """The output for a ``--json/--no-json`` option, None when it was not given."""
    return Output(as_json=not sys.stdout.isatty() if as_json is None else as_json)


def show_help_alone(context: click.Context) -> None:
    """Print the help of a group of commands that was called without one of them."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


#: Adds ``--json/--no-json`` to a command, as the parameter ``as_json``.
json_option = click.option(
    "--json/--no-json",
    "as_json",
    default=None,
    help="Write JSON lines or text; default: text on a terminal, else JSON.",
)
