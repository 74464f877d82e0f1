"""The progress of a redrive, move, copy or purge, and its summary as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import rich.progress

from jmsaio.cli.common.exits import OK, PARTLY
from jmsaio.cli.common.output import Output, printable

if TYPE_CHECKING:
    from jmsaio.maintenance.redrive import Progress

#: What the summary says of the selected messages: in a dry run, and after it is done. By the value of ``Transfer``.
_WORDS: Final = {
    "redrive": ("dead letters to send", "dead letters sent"),
    "move": ("messages to move", "messages moved"),
    "copy": ("messages to copy", "messages copied"),
    "purge": ("messages to delete", "messages deleted"),
}


@contextmanager
def progress_of(output: Output, job: str, dry_run: bool) -> Iterator[Progress | None]:
    """Show on a terminal how many messages are done, while the block runs; without a terminal, yield None.

    Args:
        output: its remarks show the progress.
        job: a value of ``Transfer``.
        dry_run: whether the messages are only counted.
    """
    from jmsaio.maintenance.redrive import Progress

    if output.as_json or not output.remarks.is_terminal:
        yield None
        return
    words = _WORDS[job][0 if dry_run else 1]
    columns = rich.progress.TextColumn("{task.description}", markup=False), rich.progress.BarColumn()
    with rich.progress.Progress(*columns, console=output.remarks, transient=True) as bar:
        task = bar.add_task(f"{job}: working", total=None)

        def show(now: Progress) -> None:
            total = "" if now.total is None else f" of {now.total}"
            text = f"{now.sent} {words}, {now.seen}{total} read"
            bar.update(task, description=text, completed=now.seen, total=now.total)

        yield Progress(show)


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
        output.line(printable(f"{topic}: not all were handed out; other consumers might hold the rest"))
    parts = [f"{summary['sent']} {words}"]
    if summary["not_selected"]:
        parts.append(f"{summary['not_selected']} not selected")
    parts += [f"{count} left ({reason})" for reason, count in summary["left"].items()]
    output.line(printable(", ".join(parts)))
    return PARTLY if partly else OK
