"""The summary of a redrive, move, copy or purge as text or JSON."""

from __future__ import annotations

from typing import Any, Final

from jmsaio.cli.common.exits import OK, PARTLY
from jmsaio.cli.common.output import Output, printable

#: What the summary says of the selected messages: in a dry run, and after it is done. By the value of ``Transfer``.
_WORDS: Final = {
    "redrive": ("dead letters to send", "dead letters sent"),
    "move": ("messages to move", "messages moved"),
    "copy": ("messages to copy", "messages copied"),
    "purge": ("messages to delete", "messages deleted"),
}


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
