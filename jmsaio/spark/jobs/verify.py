"""The comparison of an archive's rows with its manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as f

from jmsaio.spark.jobs.failures import reason_of
from jmsaio.spark.jobs.files import read_archive
from jmsaio.spark.jobs.manifest import ArchivedPart, Manifest, require_manifest
from jmsaio.spark.model.folder import AnyPath
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.values import time_text
from jmsaio.spark.session import Session


def verify(session: Session, folder: AnyPath) -> dict[str, Any]:
    """Count the rows of an archive and compare them with its manifest.

    Args:
        session: any session, or a function that starts one, called if the folder has an archive.

    Returns:
        The summary; ``problems`` has one sentence per difference.

    Raises:
        ConfigurationError: the folder has no archive.
    """
    manifest = require_manifest(folder)
    try:
        frame = read_archive(session() if callable(session) else session, folder, manifest)
        found = {} if frame is None else {row.topic: row for row in _counted(frame).collect()}
    except (PySparkException, Py4JError) as error:
        found, problems = {}, [f"files of the archive can't be read: {reason_of(error)}"]
    else:
        problems = list(compare(manifest, found))
    return {
        "job": "verify",
        "folder": str(folder),
        "destination": manifest.destination,
        "rows": sum(row.rows for row in found.values()),
        "expected": manifest.rows,
        "undecodable": sum(row.undecodable for row in found.values()),
        "problems": problems,
        "lost": list(manifest.lost),
    }


def _counted(frame: DataFrame) -> DataFrame:
    """Count the rows and the distinct positions of each topic, with times, and first and last position."""
    return frame.groupBy("topic").agg(
        f.count("*").alias("rows"),
        f.count_distinct("position").alias("positions"),
        f.count("decode_error").alias("undecodable"),
        f.min(f.unix_millis("publish_time")).alias("first"),
        f.max(f.unix_millis("publish_time")).alias("last"),
        f.min("position").alias("low"),
        f.max("position").alias("high"),
    )


def compare(manifest: Manifest, found: Mapping[str, Row]) -> Iterator[str]:
    """Yield the differences between an archive and its manifest, as sentences.

    Args:
        manifest: expected contents.
        found: actual contents, by topic: ``rows``, ``positions`` (distinct), ``first`` and ``last`` publish time in ms,
            ``low`` and ``high`` position.
    """
    parts = {part.topic: part for part in manifest.parts}
    for topic in sorted({*parts, *found}):
        part, row = parts.get(topic), found.get(topic)
        if part is None:
            yield f"{topic}: the archive has rows of it, but the manifest does not list it"
        elif row is None:
            if part.rows:
                yield f"{topic}: {part.rows} rows are missing, all of them"
        else:
            yield from (f"{topic}: {sentence}" for sentence in _differences(part, row))


def _differences(part: ArchivedPart, row: Row) -> Iterator[str]:
    if row.rows != row.positions:
        yield f"{row.rows - row.positions} rows are there twice"
    if row.positions < part.rows:
        yield f"{part.rows - row.positions} of {part.rows} rows are missing"
    if row.positions > part.rows:
        yield f"there are {row.positions - part.rows} rows more than the {part.rows} of the manifest"
    low, high = Place(row.low.ledger, row.low.entry), Place(row.high.ledger, row.high.entry)
    if low < part.start or high >= part.end:
        yield f"rows from {low} to {high} lie outside of {part.start} to {part.end}"
    if (row.first, row.last) != (part.first, part.last):
        times = " to ".join(str(time_text(time)) for time in (row.first, row.last))
        yield f"published {times}, not {time_text(part.first)} to {time_text(part.last)}"
