"""How fast an archive goes, and how much is left."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pyspark  # noqa: F401 - the module under test needs it
import pytest

from jmsaio.spark.jobs.archive import ArchiveRun
from jmsaio.spark.jobs.manifest import ArchivedPart, Manifest
from jmsaio.spark.jobs.pace import outage_record, pace_text, run_record
from jmsaio.spark.model.places import Place

PARTS = (
    ArchivedPart(topic="t", start=Place(1, 0), end=Place(1, 9), rows=6),
    ArchivedPart(topic="u", start=Place(2, 0), end=Place(2, 1)),
)
RUN = ArchiveRun(Manifest(destination="queue://q", runs=3, parts=PARTS), PARTS, files=2, undecodable=0)


def progress(behind: int, milliseconds: int) -> dict[str, Any]:
    """What Spark says of a batch."""
    behinds = {"t": {"entries": behind, "bytes": 10}, "u": {"entries": 0, "bytes": 0}}
    return {
        "batchDuration": milliseconds,
        "sources": [{"latestOffset": json.dumps({"v": 1, "p": {}, "behind": behinds})}],
    }


def test_runs_that_follow_each_other_are_summed() -> None:
    later = ArchivedPart(topic="u", start=Place(2, 1), end=Place(3, 4), rows=4)
    both = RUN.followed_by(
        ArchiveRun(attrs.evolve(RUN.manifest, runs=4), (later,), files=1, undecodable=2, lost=("lost",))
    )
    assert both.manifest.runs == 4
    assert both.parts == (PARTS[0], ArchivedPart(topic="u", start=Place(2, 0), end=Place(3, 4), rows=4))
    assert (both.files, both.undecodable, both.lost) == (3, 2, ("lost",))


def test_time_left_is_what_is_left_at_the_speed_of_full_runs() -> None:
    record = run_record(2, RUN, progress(100, 2000), 50)
    assert record == {
        "job": "archive", "run": 3, "rows": 6, "files": 2, "archived": 6, "lost": [], "seconds": 2.0,
        "rows_per_second": 3.0, "entries_behind": 100, "seconds_left": 4,
    }  # fmt: skip
    assert pace_text(record) == "3 runs, 6 messages, 3.0/s, 100 entries behind, 4 s left"


@pytest.mark.parametrize("milliseconds", [0, 10])
def test_nothing_left_takes_no_time(milliseconds: int) -> None:
    record = run_record(0, RUN, progress(0, milliseconds), 50)
    assert (record["entries_behind"], record["seconds_left"]) == (0, 0)
    assert pace_text(record).endswith(", 0 entries behind")


def test_a_run_that_spark_has_not_told_of_has_no_speed() -> None:
    record = run_record(0, RUN, None, 50)
    assert (record["rows"], record["rows_per_second"], record["seconds_left"]) == (6, None, None)
    assert pace_text(record) == "1 runs, 6 messages"


@pytest.mark.parametrize("as_text", [True, False])
def test_an_outage_is_told_when_it_begins_and_when_it_ends(as_text: bool) -> None:
    shown = {"v": 1, "p": {}, "unreachable": {"seconds": 3.0, "reason": "connection refused"}}
    began = outage_record({"sources": [{"latestOffset": json.dumps(shown) if as_text else shown}]})
    assert began == {"job": "archive", "unreachable": "connection refused"}
    assert pace_text(began) == "waiting for the broker: connection refused"
    for over in ({"sources": [{"latestOffset": {"v": 1, "p": {}}}]}, {"sources": [{"latestOffset": None}]}, None):
        assert outage_record(over)["unreachable"] is None
    assert pace_text(outage_record(None)) == "the broker answers again"
