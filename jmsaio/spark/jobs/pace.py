"""The runs of an archive by a stream: how it is cut into them, how fast they go, and how much is left."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

import jmsaio.spark
from jmsaio.spark.jobs.archive import Run

#: Entries of a run at most, where the caller does not say.
ENTRIES: Final = 100_000
#: Called with the record of each run.
Tell = Callable[[Mapping[str, Any]], None]


@attrs.frozen(kw_only=True)
class Pace:
    """How a stream is cut into runs.

    Attributes:
        entries: of a run at most; a batch of messages is one. A run begins when so many wait.
        interval: seconds after which a run begins with whatever waits; None: end with what is stored now.
    """

    entries: int = ENTRIES
    interval: float | None = None


def run_record(number: int, run: Run, progress: Mapping[str, Any] | None, entries: int) -> dict[str, Any]:
    """What is told of a run of a stream.

    Args:
        number: of the run in this stream, from 0 on.
        run: what it added.
        progress: what Spark says of its batch; None where it has not said it.
        entries: of a run at most.

    Returns:
        ``rows`` and ``files`` of the run, ``archived`` (rows in all), ``lost`` (sentences), ``seconds`` that it took,
        ``rows_per_second``, ``entries_behind`` (what it has left), and ``seconds_left`` for that at this speed, without
        what comes meanwhile. The last four are None without ``progress``.
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
        seconds_left=round(behind * seconds / entries),  # a run that leaves something was a full one
    )
    return record


def outage_record(progress: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is told when an outage of the broker begins or ends: ``unreachable``, the reason, or None.

    Args:
        progress: what Spark says of the newest trigger.
    """
    shown = None if progress is None else progress["sources"][0]["latestOffset"]
    if isinstance(shown, str):
        shown = json.loads(shown)
    outage = (shown or {}).get("unreachable")
    return {"job": "archive", "unreachable": None if outage is None else outage["reason"]}


def pace_text(record: Mapping[str, Any]) -> str:
    """A record of a run, or of an outage, as a line."""
    if "unreachable" in record:
        reason = record["unreachable"]
        return "the broker answers again" if reason is None else f"waiting for the broker: {reason}"
    text = f"{record['run']} runs, {record['archived']} messages"
    if record["entries_behind"] is None:
        return text
    left = f", {record['seconds_left']} s left" if record["entries_behind"] else ""
    return f"{text}, {record['rows_per_second']}/s, {record['entries_behind']} entries behind{left}"
