"""The manifest of an archive: its contents by partition, and the start of the next run."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import attrs

from jmsaio.errors import ConfigurationError
from jmsaio.model.version import __version__
from jmsaio.spark.model import schema
from jmsaio.spark.model.folder import AnyPath, Version, folder_at, sync
from jmsaio.spark.model.places import Place, parse_place
from jmsaio.spark.options import values
from jmsaio.spark.planning.ranges import Loss, Range

#: Name of the file in the archive's folder. Spark ignores names with an underscore when it reads the folder.
NAME: Final = "_manifest.json"
#: Version of the JSON form. Version 1 has neither ``id`` nor ``next``.
VERSION: Final = 2
_READABLE: Final = (1, VERSION)
#: Fields that have the same values in all runs of an archive.
FILTERS: Final = ("destination", "selector", "since", "until")
#: Beginning of the name of a file in a store: its run, and the writer.
_FILE: Final = re.compile("run-([0-9]{6,})-([0-9a-f]{12})-")


@attrs.frozen(kw_only=True)
class ArchivedPart:
    """Contents of an archive for one partition, or for a topic without partitions.

    Attributes:
        topic: full name of the topic or partition.
        start: the first message inspected.
        end: the first message not inspected.
        rows: number of archived messages; with a selector or times, fewer than were inspected.
        first: earliest publish time in ms since the epoch; None without rows.
        last: latest publish time in ms since the epoch; None without rows.
        next: start of the next run: ``end``, unless messages after it were lost; None: the topic no longer existed, and
            if it is recreated, its oldest message.
        undecodable: number of rows that could not be decoded completely; known only for a run.
    """

    topic: str
    start: Place
    end: Place
    rows: int = 0
    first: int | None = None
    last: int | None = None
    next: Place | None = attrs.field(default=attrs.Factory(lambda part: part.end, takes_self=True))
    undecodable: int = attrs.field(default=0, eq=False)

    def followed_by(self, other: ArchivedPart) -> ArchivedPart:
        """Combine this part with a later one of the same partition."""
        times = [time for time in (self.first, self.last, other.first, other.last) if time is not None]
        return ArchivedPart(
            topic=self.topic,
            start=min(self.start, other.start),
            end=max(self.end, other.end),
            rows=self.rows + other.rows,
            first=min(times, default=None),
            last=max(times, default=None),
            next=other.next,
            undecodable=self.undecodable + other.undecodable,
        )


def join_parts(parts: Iterable[ArchivedPart], later: Iterable[ArchivedPart]) -> tuple[ArchivedPart, ...]:
    """Combine parts with later ones of the same partitions, sorted by topic."""
    by_topic = {part.topic: part for part in parts}
    for part in later:
        before = by_topic.get(part.topic)
        by_topic[part.topic] = part if before is None else before.followed_by(part)
    return tuple(by_topic[topic] for topic in sorted(by_topic))


@attrs.frozen(kw_only=True)
class Manifest:
    """Contents of an archive.

    Attributes:
        destination: archived destination; like ``selector``, ``since`` and ``until`` as given in ``ArchiveOrder``.
        tool: name and version of the program that wrote it last.
        schema: version of the columns, ``jmsaio.spark.model.schema.VERSION``.
        runs: number of runs that added something.
        lost: messages that the broker deleted before they were archived, one sentence per loss.
        parts: parts, sorted by topic.
        id: unique id of the archive; "" until something was added.
        writer: in a store, the unique name of the call that can add runs; else "".
        writers: last run that each writer added, by its name.
        stored: version of the object that was read or written; None without one, and outside of stores.
        files: number of files; known only for what runs have added.
    """

    destination: str
    selector: str | None = None
    since: str | None = None
    until: str | None = None
    tool: str = f"jmsaio {__version__}"
    schema: int = schema.VERSION
    runs: int = 0
    lost: tuple[str, ...] = ()
    parts: tuple[ArchivedPart, ...] = ()
    id: str = ""
    writer: str = ""
    writers: Mapping[str, int] = attrs.field(factory=dict)
    stored: Version | None = attrs.field(default=None, eq=False)
    files: int = attrs.field(default=0, eq=False)

    @property
    def prefix(self) -> str:
        """Beginning of the names of the next run's files."""
        return f"run-{self.runs + 1:06d}-" + (f"{self.writer}-" if self.writer else "")

    def has(self, name: str) -> bool:
        """Return False for the name of a file in a store of a run that was not added."""
        found = _FILE.match(name)
        return found is None or int(found[1]) <= self.writers.get(found[2], 0)

    @property
    def rows(self) -> int:
        """Number of messages in the archive."""
        return sum(part.rows for part in self.parts)

    def ends(self) -> dict[str, Place]:
        """Return the start of the next run, by topic; topics that no longer existed are left out."""
        return {part.topic: part.next for part in self.parts if part.next is not None}

    def after_run(self, parts: Iterable[ArchivedPart], lost: Iterable[str] = (), files: int = 0) -> Manifest:
        """Return the manifest after another run with these parts."""
        return attrs.evolve(
            self,
            tool=f"jmsaio {__version__}",
            runs=self.runs + 1,
            lost=(*self.lost, *lost),
            parts=join_parts(self.parts, parts),
            id=self.id or uuid.uuid4().hex,
            writers={**self.writers, self.writer: self.runs + 1} if self.writer else self.writers,
            files=self.files + files,
        )

    def after_losses(self, losses: Iterable[Loss]) -> Manifest:
        """Return the manifest after accepting losses: they are recorded, and not reported again."""
        found = {loss.topic: loss for loss in losses}
        return attrs.evolve(
            self,
            lost=(*self.lost, *map(str, found.values())),
            parts=tuple(
                attrs.evolve(part, next=found[part.topic].found) if part.topic in found else part for part in self.parts
            ),
        )

    def check_same(self, other: Manifest) -> None:
        """Check that a run described by ``other`` can add to this archive.

        Raises:
            ConfigurationError: it would archive something else. The error names the difference.
        """
        for name in (*FILTERS, "schema"):
            mine, wanted = getattr(self, name), getattr(other, name)
            if mine != wanted:
                raise ConfigurationError(
                    f"the archive was begun with {name} {_shown(mine)}, not {_shown(wanted)}: resume with the same, or "
                    "begin another archive in another folder"
                )

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as JSON."""
        return {
            "version": VERSION,
            "id": self.id,
            **{name: getattr(self, name) for name in ("tool", "schema", *FILTERS, "runs")},
            "rows": self.rows,
            "lost": list(self.lost),
            "partitions": [part_to_json(part) for part in self.parts],
            **({"writer": self.writer, "writers": self.writers} if self.writer else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read a manifest from JSON.

        Raises:
            ConfigurationError: another version wrote it, or it is not a manifest.
        """
        if data.get("version") not in _READABLE:
            raise ConfigurationError(
                f"the manifest is of version {_shown(data.get('version'))}, not {VERSION}: use the version of jmsaio "
                f"that wrote it ({_shown(data.get('tool'))})"
            )
        try:
            return cls(
                **{name: data[name] for name in ("tool", "schema", *FILTERS, "runs")},
                lost=tuple(data["lost"]),
                parts=tuple(part_from_json(part) for part in data["partitions"]),
                id=str(data.get("id", "")),
                writer=data.get("writer", ""),
                writers=data.get("writers", {}),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"this is no manifest of an archive: {type(error).__name__}: {error}") from error


def read_manifest(folder: AnyPath) -> Manifest | None:
    """Read the manifest of the archive in a folder; return None if there is none.

    Raises:
        ConfigurationError: the manifest can't be read, or the folder is a URL that archives can't use.
    """
    path = folder_at(str(folder)) / NAME
    try:
        text, version = (path.read_bytes(), None) if isinstance(path, Path) else path.read()
        data = json.loads(text)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} can't be read: {error}; restore it, or begin another archive") from error
    if not isinstance(data, dict):
        raise ConfigurationError(f"{path} is no manifest of an archive")
    try:
        return attrs.evolve(Manifest.from_json(data), stored=version)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def require_manifest(folder: AnyPath) -> Manifest:
    """Read the manifest as ``read_manifest`` does; raise ConfigurationError if there is none."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise ConfigurationError(
            f"{folder} is no archive: it has no {NAME}; give the folder that 'jmsaio spark archive' was given"
        )
    return manifest


def write_manifest(folder: AnyPath, manifest: Manifest) -> Manifest:
    """Write the manifest atomically: readers see the previous one or this one, also after a crash.

    Returns:
        The manifest with its new version.

    Raises:
        IllegalStateError: in a store, the manifest no longer has the version of this one.
    """
    text = json.dumps(manifest.to_json(), indent=2, ensure_ascii=False) + "\n"
    if not isinstance(folder, Path):
        return attrs.evolve(manifest, stored=(folder / NAME).replace_version(text.encode(), manifest.stored))
    new = folder / f"{NAME}.new"
    new.write_text(text, encoding="utf-8")
    sync([new])
    new.replace(folder / NAME)
    sync([folder])
    return manifest


def bounds_json(part: ArchivedPart | Range) -> dict[str, Any]:
    """Return topic, start and end of a part or range as JSON."""
    return {"topic": part.topic, "start": str(part.start), "end": str(part.end)}


def part_to_json(part: ArchivedPart) -> dict[str, Any]:
    """Return a part as JSON; without ``undecodable``."""
    return {
        **bounds_json(part),
        "rows": part.rows,
        "first": values.time_text(part.first),
        "last": values.time_text(part.last),
        "next": None if part.next is None else str(part.next),
    }


def part_from_json(data: Mapping[str, Any]) -> ArchivedPart:
    """Read a part from JSON. Raises KeyError, TypeError, ValueError, ConfigurationError."""
    what = f"partition {data['topic']}"
    following = data["next"] if "next" in data else data["end"]
    return ArchivedPart(
        topic=data["topic"],
        start=parse_place(data["start"], what),
        end=parse_place(data["end"], what),
        rows=int(data["rows"]),
        first=None if data["first"] is None else values.time(data["first"]),
        last=None if data["last"] is None else values.time(data["last"]),
        next=None if following is None else parse_place(following, what),
        undecodable=data.get("undecodable", 0),
    )


def _shown(value: object) -> str:
    return "none" if value is None else f"{value!r:.200}"
