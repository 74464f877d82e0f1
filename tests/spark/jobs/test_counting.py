"""Counting the rows of an archive's files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jmsaio.spark.arrow.columns import TIMESTAMP
from jmsaio.spark.jobs import counting
from jmsaio.spark.jobs.counting import Counted, count_files
from jmsaio.spark.model.places import Place

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
POSITION = pa.struct([("ledger", pa.int64()), ("entry", pa.int64()), ("batch", pa.int32())])
#: Topic, milliseconds, ledger, entry, decode_error.
Row = tuple[str, int | None, int, int, str | None]
ROWS: list[Row] = [
    ("t", 5, 1, 9, None),
    ("t", -7, 2, 0, "no readable body"),
    ("u", 3, 8, 1, None),
    ("t", None, 1, 3, "no readable time"),
    ("t", 6, 2, 4, None),
    ("u", 3, 8, 1, None),
]


def write(path: Path, rows: list[Row]) -> Path:
    """A file of rows, with a column that does not count, too."""
    topics, times, ledgers, entries, errors = zip(*rows, strict=True)
    table = pa.table(
        {
            "topic": pa.array(topics),
            "payload": pa.array([b"x"] * len(rows)),
            "publish_time": pa.array(
                [None if time is None else EPOCH + timedelta(milliseconds=time) for time in times], TIMESTAMP
            ),
            "position": pa.array(
                [
                    {"ledger": ledger, "entry": entry, "batch": 0}
                    for ledger, entry in zip(ledgers, entries, strict=True)
                ],
                POSITION,
            ),
            "decode_error": pa.array(errors, pa.string()),
        }
    )
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize("together", [1, 2, 100])
@pytest.mark.parametrize("cut", [1, 3, 6])
def test_rows_are_counted_by_topic_across_batches_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int, cut: int
) -> None:
    monkeypatch.setattr(counting, "_ROWS", together)
    parts = [ROWS[:cut], ROWS[cut:]]
    paths = [write(tmp_path / f"{number}.parquet", rows) for number, rows in enumerate(parts) if rows]
    assert count_files(paths) == {
        "t": Counted(rows=4, undecodable=2, first=-7, last=6, low=Place(1, 3), high=Place(2, 4)),
        "u": Counted(rows=2, undecodable=0, first=3, last=3, low=Place(8, 1), high=Place(8, 1)),
    }


def test_rows_without_a_time_have_none(tmp_path: Path) -> None:
    counted = count_files([write(tmp_path / "one.parquet", [("t", None, 1, 0, "no readable time")])])["t"]
    assert (counted.first, counted.last, counted.rows) == (None, None, 1)


def test_no_files_have_no_rows() -> None:
    assert count_files([]) == {}


def test_a_damaged_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "one.parquet"
    path.write_bytes(b"no Parquet")
    with pytest.raises(pa.ArrowInvalid):
        count_files([path])
