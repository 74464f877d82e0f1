"""The runs of an archive by a stream: their size, their speed, and the remaining backlog."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

import jmsaio.spark
from jmsaio.spark.jobs.archive import ArchiveRun

#: Default maximum entries per run.
ENTRIES: Final = 100_000
#: Function called with the record of each run.
OnRun = Callable[[Mapping[str, Any]], None]


@attrs.frozen(kw_only=True)
class Pace:
    """Size and interval of a stream's runs.

    Attributes:
        entries: maximum entries per run; a batch of messages counts as one. A run starts when this many are waiting.
        interval: seconds after which a run starts with fewer; None: stop at the end of the stored messages.
    """

    entries: int = ENTRIES
    interval: float | None = None


def run_record(number: int, run: ArchiveRun, progress: Mapping[str, Any] | None, entries: int) -> dict[str, Any]:
    """Return the record of a stream's run.

    Args:
        number: number of the run in this stream, from 0.
        run: result of the run.
        progress: Spark's progress of its batch; None if there is none.
        entries: maximum entries per run.

    Returns:
        ``rows`` and ``files`` of the run, ``archived`` (rows in all), ``lost`` (sentences), ``seconds`` of the run,
        ``rows_per_second``, ``entries_behind`` (remaining entries), and ``seconds_left`` for them at this speed,
        without new messages. The four from ``seconds`` on are None without ``progress``.
    """
    record: dict[str, Any] = {
        "job": "archive",
        "run": number + 1,
        "rows": sum(part.rows for part in run.parts),
        "files": run.files,
        "archived": run.manifest.rows,
        "lost": list(run.lost),
        **dict.fromkeys(("seconds", "rows_per_second", "entries_behind", "seconds_left")),
    }
    if progress is None:
        return record
    seconds = max(progress["batchDuration"], 1) / 1000
    behind = sum(each.entries for each in jmsaio.spark.lag(progress).values())
    record.update(
        seconds=seconds,
        rows_per_second=round(record["rows"] / seconds, 1),
        entries_behind=behind,
        seconds_left=round(behind * seconds / entries),  # a run that leaves entries was a full one
    )
    return record


def outage_record(progress: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the record of the beginning or end of a broker outage: ``unreachable``, the reason, or None.

    Args:
        progress: Spark's progress of the newest trigger.
    """
    shown = None if progress is None else progress["sources"][0]["latestOffset"]
    if isinstance(shown, str):
        shown = json.loads(shown)
    outage = (shown or {}).get("unreachable")
    return {"job": "archive", "unreachable": None if outage is None else outage["reason"]}


def pace_text(record: Mapping[str, Any]) -> str:
    """Format the record of a run or of an outage as a line."""
    if "unreachable" in record:
        reason = record["unreachable"]
        return "the broker answers again" if reason is None else f"waiting for the broker: {reason}"
    text = f"{record['run']} runs, {record['archived']} messages"
    if record["entries_behind"] is None:
        return text
    left = f", {record['seconds_left']} s left" if record["entries_behind"] else ""
    return f"{text}, {record['rows_per_second']}/s, {record['entries_behind']} entries behind{left}"
