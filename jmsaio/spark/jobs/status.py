"""State of a stream, by its checkpoint, or of an archive: places, backlog, losses. Needs no Spark session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from jmsaio.errors import ConfigurationError
from jmsaio.model.topic_names import split_partition
from jmsaio.spark.model.place import Place
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.options.values import time_text
from jmsaio.spark.planning.batch_planning import Backlog, admin_of, find_stores, list_sources, source_of
from jmsaio.spark.planning.plan import GONE, Behind, from_json, locate
from jmsaio.spark.planning.ranges import Loss
from jmsaio.spark.planning.tolerance import folder_at, names_in, read_bytes, read_losses
from jmsaio.spark.worker import connected_by

#: Folders in an archive's folder: the checkpoint of its stream, and accepted losses. The underscore hides them from
#: readers of its files.
CHECKPOINT: Final = "_checkpoint"
LOSSES: Final = "_losses"
_OFFSETS: Final = "offsets"


@attrs.frozen
class Checkpoint:
    """Checkpoint of a stream: the places up to which micro-batches are committed, and the newest micro-batch."""

    places: Mapping[str, Place]
    last: Mapping[str, Any]


def status(connection: Mapping[str, str], folder: str, losses: str | None = None) -> dict[str, Any]:
    """Return how far a stream or an archive has read, and what the broker stores after that.

    ``folder`` is the checkpoint folder of a stream, or the folder of an archive: an absolute path, or a URL; ``losses``
    is the stream's ``dataLossFolder``. The summary has ``last``, the last micro-batch; ``partitions`` with place and
    backlog; the whole backlog; ``lost``, known losses, and ``missing``, messages to read next that no longer exist, one
    sentence each.

    Raises:
        ConfigurationError: the folder is neither, can't be read, or another version wrote it.
    """
    try:
        archived = read_checkpoint(f"{folder}/{CHECKPOINT}")
        found = read_checkpoint(folder) if archived is None else archived
        noted = [f"{folder}/{LOSSES}"] if archived is not None else [losses] if losses is not None else []
        lost = [sentence for each in noted for sentence in read_losses(each)]
    except OSError as error:
        raise ConfigurationError(f"{folder} can't be read: {error}") from error
    if found is None:
        raise ConfigurationError(f"{folder} is neither an archive nor the checkpoint of a stream that has begun")
    starts, behind, missing = asyncio.run(_find(connection, found.places))
    return {
        "job": "status",
        "folder": folder,
        "kind": "stream" if archived is None else "archive",
        "last": found.last,
        "lost": lost,
        "missing": missing,
        "partitions": [
            {"topic": topic, "place": None if (place := starts.get(topic)) is None else str(place), **attrs.asdict(one)}
            for topic, one in sorted(behind.items())
        ],
        **attrs.asdict(Behind.total(behind.values())),
    }


def read_checkpoint(folder: str) -> Checkpoint | None:
    """Read the checkpoint of a stream; return None if it has not begun.

    Raises:
        ConfigurationError: a file can't be read, or another version wrote it, or the stream has no source ``jms``.
        OSError: the folder can't be read.
    """
    system, path = folder_at(folder)
    planned, done = (
        {int(name) for name in names_in(system, f"{path}/{kind}") if name.isdigit()} for kind in (_OFFSETS, "commits")
    )
    if not planned:
        return None

    def lines(batch: int) -> list[Any]:
        """Return the JSON lines of a micro-batch: Spark's own, and the offsets of each source."""
        file = f"{path}/{_OFFSETS}/{batch}"
        try:
            return [json.loads(line) for line in read_bytes(system, file).decode().splitlines()[1:] if line != "-"]
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{file} can't be read: {error}") from error

    places: dict[str, Place] = {}
    if committed := done & planned:
        for line in lines(max(committed))[1:]:
            if isinstance(line, dict) and "p" in line:
                places |= from_json(line)
        if not places:
            raise ConfigurationError(f"{folder} is the checkpoint of a stream without a source jms")
    began = lines(max(planned))[0]["batchTimestampMs"]
    return Checkpoint(places, {"batch": max(planned), "committed": max(planned) in done, "began": time_text(began)})


async def _find(
    connection: Mapping[str, str], places: Mapping[str, Place]
) -> tuple[dict[str, Place], dict[str, Behind], list[str]]:
    """Return the places in normal form, the backlogs, including new partitions, and the losses after the places."""
    topics = ",".join(dict.fromkeys(split_partition(topic)[0] for topic in places))
    if not topics:
        return {}, {}, []
    options = parse_options({**connection, "topic": f"multi:{topics}"}, Use.READ)
    async with connected_by(options) as (transport, configuration):
        names = await list_sources(transport, source_of(options, configuration), may_miss=True)
        stores = await find_stores(transport, names)
        losses = [Loss(topic, place, None, GONE) for topic, place in places.items() if topic not in stores]
        found = {topic: locate(topic, places[topic], stores[topic]) for topic in places if topic in stores}
        starts = {topic: place for topic, (place, _) in found.items()}
        losses += [loss for _, loss in found.values() if loss is not None]
        return starts, await Backlog(admin_of(transport)).find(starts, stores), [str(loss) for loss in losses]
