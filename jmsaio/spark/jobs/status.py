"""State of a stream, by its checkpoint, or of an archive: places, backlog, losses. Needs no Spark session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from jmsaio.errors import ConfigurationError
from jmsaio.model.topic_names import split_partition
from jmsaio.spark.jobs.extent import locate_all
from jmsaio.spark.jobs.manifest import Manifest, read_manifest
from jmsaio.spark.model.folder import AnyPath
from jmsaio.spark.model.places import Place
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.options.values import time_text
from jmsaio.spark.planning.batch_planning import Backlog, list_sources, look, source_of
from jmsaio.spark.planning.losses import read_losses
from jmsaio.spark.planning.offsets import Behind, from_json
from jmsaio.spark.worker import connected_by

_OFFSETS: Final = "offsets"
_Read = tuple[dict[str, Place], dict[str, Any]]


def status(connection: Mapping[str, str], folder: AnyPath, losses: AnyPath | None = None) -> dict[str, Any]:
    """Return how far a stream or an archive has read, and what the broker stores after that.

    Args:
        connection: connection options of the data source, including ``url``.
        folder: checkpoint folder of a stream, or folder of an archive.
        losses: the stream's ``dataLossFolder``.

    Returns:
        The summary: ``last``, the last run or micro-batch; ``partitions`` with place and backlog; the whole backlog;
        ``lost``, known losses, and ``missing``, messages to read next that no longer exist, one sentence each.

    Raises:
        ConfigurationError: the folder is neither, or another version wrote it.
        TransportError: the broker does not answer.
    """
    archived = read_manifest(folder)
    places, summary = _read_checkpoint(folder) if archived is None else _read_archive(archived)
    if losses is not None:
        summary["lost"] = [*summary["lost"], *read_losses(losses)]
    starts, behind, missing = asyncio.run(_find(connection, places))
    return {
        "job": "status",
        "folder": str(folder),
        **summary,
        "missing": missing,
        "partitions": [
            {"topic": topic, "place": None if (place := starts.get(topic)) is None else str(place), **attrs.asdict(one)}
            for topic, one in sorted(behind.items())
        ],
        **attrs.asdict(Behind.total(behind.values())),
    }


def _read_archive(manifest: Manifest) -> _Read:
    newest = max((part.last for part in manifest.parts if part.last is not None), default=None)
    last = {"run": manifest.runs, "rows": manifest.rows, "newest": time_text(newest)}
    return manifest.ends(), {"kind": "archive", "last": last, "lost": list(manifest.lost)}


def _read_checkpoint(folder: AnyPath) -> _Read:
    """Return the places up to which micro-batches are committed."""
    planned, done = _batches(folder / _OFFSETS), _batches(folder / "commits")
    if not planned:
        raise ConfigurationError(f"{folder} is neither an archive nor the checkpoint of a stream that has begun")
    places: dict[str, Place] = {}
    if committed := done & planned:
        for line in _lines(folder, max(committed))[1:]:
            if isinstance(line, dict) and "p" in line:
                places |= from_json(line)
        if not places:
            raise ConfigurationError(f"{folder} is the checkpoint of a stream without a source jms")
    began = _lines(folder, max(planned))[0]["batchTimestampMs"]
    last = {"batch": max(planned), "committed": max(planned) in done, "began": time_text(began)}
    return places, {"kind": "stream", "last": last, "lost": []}


def _batches(folder: AnyPath) -> set[int]:
    return {int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit()}


def _lines(folder: AnyPath, batch: int) -> list[Any]:
    """Return the JSON lines of a micro-batch: Spark's own, and the offsets of each source."""
    path = folder / _OFFSETS / str(batch)
    try:
        return [json.loads(line) for line in path.read_bytes().decode().splitlines()[1:] if line != "-"]
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} can't be read: {error}") from error


async def _find(
    connection: Mapping[str, str], places: Mapping[str, Place]
) -> tuple[dict[str, Place], dict[str, Behind], list[str]]:
    """Return the places in normal form, the backlogs, also of new partitions, and what is to be read and is lost."""
    topics = ",".join(dict.fromkeys(split_partition(topic)[0] for topic in places))
    if not topics:
        return {}, {}, []
    options = parse_options({**connection, "topic": f"multi:{topics}"}, Use.READ)
    async with connected_by(options) as (transport, configuration):
        names = await list_sources(transport, source_of(options, configuration), may_miss=True)
        stores = await look(transport, names)
        starts, losses = locate_all(places, stores, ())
        return starts, await Backlog(transport).find(starts, stores), [str(loss) for loss in losses]
