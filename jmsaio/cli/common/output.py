"""Exit codes, and output: text on a terminal, JSON lines when piped or with --json. Remarks go to standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs
import click
import rich.progress
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from jmsaio.maintenance.transfer import TransferProgress


OK = 0
ERROR = 1
USAGE = 2
NOTHING = 3
#: Stored messages that should have been read are lost.
DATA_LOSS = 4
#: Something was left out.
PARTLY = 5
INTERRUPTED = 130
#: The output pipe is closed: 128 plus the signal's number, as shells report it.
BROKEN_PIPE = 141


# Characters that can move the cursor or change the terminal, except line ends and tabs; and lone surrogates, which
# UTF-8 can't encode.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class _Console(Console):
    """A console that raises BrokenPipeError when its reader exits; rich would exit the process immediately."""

    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - called where the error is handled


@attrs.define
class Output:
    """The output of a command: ``console`` is standard output, ``remarks`` standard error."""

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

    def result(self, data: Mapping[str, object], text: str) -> None:
        """Write a result: ``data`` as a JSON line, or ``text``, whose control characters are escaped."""
        if self.as_json:
            self.record(data)
        else:
            self.line(printable(text))

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
    return Output(as_json=not sys.stdout.isatty() if as_json is None else as_json)


def show_help_alone(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


#: Adds ``--json/--no-json`` to a command, as the parameter ``output``.
json_option = click.option(
    "--json/--no-json",
    "output",
    default=None,
    callback=lambda context, option, value: make_output(value),
    help="Write JSON lines or text; default: text on a terminal, else JSON.",
)


#: Spaces between two columns.
GAP: Final = 2
#: Number of the most important columns that are shown even without room.
_LEAST: Final = 2


def width_of(console: Console) -> int | None:
    """Return the width of a console in characters; None for a file or a pipe, where lines have any length."""
    return console.width if console.is_terminal else None


def table_text(
    lines: Sequence[Sequence[str]], order: Sequence[int], numbers: Collection[int], width: int | None
) -> Text:  # fmt: skip
    """Return a table of ``width`` characters, one line per row; the last line names the columns that have no room.

    ``lines`` are the cells of the head and of each row; ``order`` has the indexes of the columns, the most important
    first. The columns in ``numbers`` are aligned to the right.
    """
    sizes = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    shown: list[int] = []
    used = -GAP
    for index in order:
        used += GAP + sizes[index]
        if width is not None and used > width and len(shown) >= _LEAST:
            break
        shown.append(index)
    text = Text(no_wrap=True, overflow="ignore")
    for number, line in enumerate(lines):
        cells = []
        for index in sorted(shown):
            blanks = " " * (sizes[index] - cell_len(line[index]))
            cells.append(blanks + line[index] if index in numbers else line[index] + blanks)
        text.append((" " * GAP).join(cells).rstrip() + "\n", "" if number else "bold")
    if left_out := [lines[0][index] for index in order if index not in shown]:
        text.append(f"no room for: {', '.join(left_out)}\n", "dim")
    text.right_crop(1)
    return text


#: What the summary says of the selected messages: in a dry run, and after it is done. By the value of ``Transfer``.
_WORDS: Final = {
    "redrive": ("dead letters to send", "dead letters sent"),
    "move": ("messages to move", "messages moved"),
    "copy": ("messages to copy", "messages copied"),
    "purge": ("messages to delete", "messages deleted"),
}


@contextmanager
def progress_of(output: Output, job: str, dry_run: bool) -> Iterator[TransferProgress | None]:
    """Show on a terminal how many messages are done, while the block runs; without a terminal, yield None."""
    from jmsaio.maintenance.transfer import TransferProgress

    if output.as_json or not output.remarks.is_terminal:
        yield None
        return
    words = _WORDS[job][0 if dry_run else 1]
    columns = rich.progress.TextColumn("{task.description}", markup=False), rich.progress.BarColumn()
    with rich.progress.Progress(*columns, console=output.remarks, transient=True) as bar:
        task = bar.add_task(f"{job}: working", total=None)

        def show(now: TransferProgress) -> None:
            total = "" if now.total is None else f" of {now.total}"
            text = f"{now.sent} {words}, {now.seen}{total} read"
            bar.update(task, description=text, completed=now.seen, total=now.total)

        yield TransferProgress(show)


def write_outcome(output: Output, summary: dict[str, Any]) -> int:
    """Write the summary of a redrive, move, copy or purge; return the exit code."""
    partly = summary["left"] or summary["unseen"] or summary["errors"]
    if output.as_json:
        output.record(summary)
        return PARTLY if partly else OK
    words = _WORDS[summary["job"].removeprefix("dlq ")][0 if summary["dry_run"] else 1]
    for target, count in summary["targets"].items():
        output.line(printable(f"{'of' if 'delete' in words else 'to'} {target}: {count}"))
    for text in summary["errors"]:
        output.line(printable(f"error: {text}"))
    for topic in summary["unseen"]:
        output.line(printable(f"{topic}: not all were received; other consumers might hold the rest"))
    parts = [f"{summary['sent']} {words}"]
    if summary["not_selected"]:
        parts.append(f"{summary['not_selected']} not selected")
    parts += [f"{count} left ({reason})" for reason, count in summary["left"].items()]
    output.line(printable(", ".join(parts)))
    return PARTLY if partly else OK
