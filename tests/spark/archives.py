"""Archives for tests, with files as an archive has them, but made without Spark and a broker."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jmsaio.spark.arrow.columns import TIMESTAMP
from jmsaio.spark.jobs.files import COUNTED, count_batches, open_file
from jmsaio.spark.jobs.manifest import ArchivedPart, Manifest, write_manifest

SCHEMA = pa.schema(
    {
        "topic": pa.string(),
        "position": pa.struct([("ledger", pa.int64()), ("entry", pa.int64()), ("batch", pa.int32())]),
        "publish_time": TIMESTAMP,
        "JMSMessageID": pa.string(),
        "JMSType": pa.string(),
        "body_type": pa.string(),
        "properties": pa.map_(pa.string(), pa.string()),
        "payload": pa.binary(),
        "decode_error": pa.string(),
    }
)
#: Noon of the first day.
NOON = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


def row(entry: int, payload: bytes | None = b"", **changes: Any) -> dict[str, Any]:
    """A row of a text message of the first day."""
    return {
        "topic": "persistent://public/default/orders",
        "position": {"ledger": 7, "entry": entry, "batch": -1},
        "publish_time": NOON,
        "JMSMessageID": f"ID:7:{entry}:-1",
        "body_type": "text",
        "payload": payload,
        **changes,
    }


def write_file(folder: Path, rows: list[dict[str, Any]], name: str = "run-000001-a.parquet") -> Path:
    """Add a file with rows of one day."""
    time = rows[0]["publish_time"]
    date = "__HIVE_DEFAULT_PARTITION__" if time is None else str(time.date())
    path = folder / "destination=queue%3A%2F%2Forders" / f"date={date}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), path)
    return path


def count_files(paths: list[Path], rows: int = 1000) -> tuple[ArchivedPart, ...]:
    """Count the rows of files by topic, so many rows at a time."""
    files = [open_file(path) for path in paths]
    found = count_batches(batch for file in files for batch in file.iter_batches(rows, columns=list(COUNTED)))
    for file in files:
        file.close()
    return found


def write_archive(folder: Path, *files: list[dict[str, Any]], **changes: Any) -> list[Path]:
    """Make an archive that is whole: files and their manifest."""
    paths = [write_file(folder, rows, f"run-{number:06d}-a.parquet") for number, rows in enumerate(files, 1)]
    given = {"destination": "queue://orders", "runs": len(paths), "parts": count_files(paths), **changes}
    write_manifest(folder, Manifest(**given))
    return paths
