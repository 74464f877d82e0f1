"""Archives of a destination in Parquet files, run by run: each run resumes where the previous one ended.

Each run is added completely or not at all; earlier runs are kept if a later one fails. A run writes beside the archive,
adds its number to the names of its files, moves them to their places, and writes the manifest last. Files with the
number of a run that is not in the manifest are left over from a crash: the next run deletes them, so that each message
is archived exactly once.

Stores have no locks. Instead, ``archive`` writes its unique name into the manifest, which it replaces only if nobody
else did since; and its files have that name. So another call that began before can't add a run any more.
"""

from __future__ import annotations

import asyncio
import fcntl
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from jmsaio.errors import ConfigurationError, IllegalStateError, JMSError, NotFoundError
from jmsaio.spark.jobs.extent import LOSSES, ArchiveOrder, ArchivePlan, count_entries, plan_archive, plan_next
from jmsaio.spark.jobs.failures import own_errors, reason_of
from jmsaio.spark.jobs.files import Written, write_here, write_in_spark
from jmsaio.spark.jobs.manifest import (
    NAME,
    ArchivedPart,
    Manifest,
    bounds_json,
    join_parts,
    read_manifest,
    write_manifest,
)
from jmsaio.spark.model.folder import AnyPath, StorePath, remove, sync
from jmsaio.spark.options.parse import SourceOptions, Use, parse_options
from jmsaio.spark.planning.cursor import StreamCursor
from jmsaio.spark.planning.losses import read_losses, write_loss
from jmsaio.spark.planning.offsets import has_enough
from jmsaio.spark.planning.outage import Outage
from jmsaio.spark.planning.plan import SMALL_BYTES, SMALL_ENTRIES, Stored, are_small, share_tasks, split, weigh
from jmsaio.spark.planning.ranges import Range
from jmsaio.spark.session import Session
from jmsaio.spark.worker import connected_by
from jmsaio.transport.administration import Admin, StartPosition

#: Folder where a run writes, in the archive's folder; the underscore hides it from readers of the folder.
_STAGING: Final = "_writing"
#: File locked by the active run.
_LOCK: Final = "_lock"
#: Seconds between requests for new messages.
_POLL: Final = 1.0


@attrs.frozen(kw_only=True)
class Pace:
    """Size and interval of an archive's runs.

    Attributes:
        entries: maximum entries per run; a batch of messages counts as one. None: everything in one run.
        interval: archive new messages, too, until stopped: a run starts when ``entries`` are waiting, or with fewer
            after so many seconds. None: stop at the end of the stored messages.
    """

    entries: int | None = 100_000
    interval: float | None = None


#: Writes the rows of a run as files below a folder.
Write: TypeAlias = Callable[[AnyPath], Written]
#: Function called with the record of each run, and when an outage begins or ends, in the caller's thread.
OnRun = Callable[[Mapping[str, Any]], None]


def archive(
    session: Session,
    order: ArchiveOrder,
    pace: Pace = Pace(),
    *,
    stop: Callable[[], bool] = lambda: False,
    report: OnRun = lambda record: None,
) -> dict[str, Any]:
    """Archive the messages of a destination that are not archived yet.

    Args:
        session: a session, or a function that starts one, called for the first run that is not small: this process
            does small ones itself, since a session starts slowly. The first run of a continuous archive is small.
        order: archive order. A folder without an archive gets one.
        pace: size and interval of the runs.
        stop: called before each run, and once a second while there is too little for one; once it returns True,
            archiving ends.
        report: see ``run_record``; the record of an outage has ``unreachable``, the reason, or None at its end.

    Returns:
        The summary: rows, files, and the contents of the archive. If a later run failed, or ``stop`` ended archiving
        before the end of the stored messages, it has ``stopped``, the reason; the same call continues. With
        ``consume``, it has ``subscription``, and ``unmoved``, the topics where that is not past the archived messages.

    Raises:
        ConfigurationError: an option is invalid, or the folder has an archive of something else, or a continuous
            archive has ``until``, or the subscription has consumers.
        DataLossError: messages to archive no longer exist; nothing was added.
        TransportError: the broker failed; nothing was added.

    A KeyboardInterrupt drops the current run; earlier runs are kept.
    """
    if pace.interval is not None and order.until is not None:
        raise ConfigurationError("a continuous archive has no end: omit until, or archive only stored messages")
    began = time.monotonic()
    with open_archive(order) as before:
        runs = _Runs(session, order, pace, stop, report, before, order.manifest())
        try:
            with own_errors():
                stopped = None if runs.add_all() else "interrupted"
        except Exception as error:
            if not runs.added.runs:
                raise
            stopped = reason_of(error)
        lost = read_losses(order.unreported)
        remove(order.unreported)
    return {
        "job": "archive",
        "destination": order.destination,
        "folder": str(order.folder),
        "rows": runs.added.rows,
        "undecodable": sum(part.undecodable for part in runs.added.parts),
        "files": runs.added.files,
        "archived": runs.archived.rows,
        "lost": [*lost, *runs.added.lost],
        "partitions": [{**bounds_json(part), "rows": part.rows} for part in runs.added.parts],
        "seconds": round(time.monotonic() - began, 3),
        **({} if order.consume is None else {"subscription": order.consume, "unmoved": sorted(runs.unmoved)}),
        **({} if stopped is None else {"stopped": stopped}),
    }


@attrs.define(eq=False)
class _Runs:
    """The runs of one call of ``archive``.

    Attributes:
        archived: manifest of the archive.
        added: manifest of what the runs of this call have added.
        unmoved: topics whose subscription is not past the archived messages.
    """

    session: Session
    order: ArchiveOrder
    pace: Pace
    stop: Callable[[], bool]
    report: OnRun
    archived: Manifest
    added: Manifest
    unmoved: set[str] = attrs.field(factory=set)
    _options: SourceOptions = attrs.field(
        init=False,
        default=attrs.Factory(lambda runs: parse_options(runs.order.reader_options(), Use.READ), takes_self=True),
    )
    _begun: float = -inf  # when the previous run began
    _is_first: bool = True
    _cursor: StreamCursor | None = None

    def add_all(self) -> bool:
        """Add runs until everything is archived; return False if ``stop`` ended that."""
        is_endless, until = self.pace.interval is not None, None
        while (plan := self._next_plan()) is not None:
            if is_endless and self.archived.parts and not plan.stores:
                raise NotFoundError(f"nothing is left of {self.order.destination}: its topics no longer exist")
            self._accept(plan)
            if is_endless or until is None:
                until = plan.ends()
            ranges = plan.run(*self._size(), until)
            if self.stop():
                return is_endless or not ranges
            if ranges:
                behind = count_entries(plan.run(None, None, until)) - count_entries(ranges)
                self._add(ranges, behind)
                if is_endless or behind or self.order.consume is not None:  # another plan moves the subscription
                    continue
            if not is_endless:
                return True
        return is_endless

    def _accept(self, plan: ArchivePlan) -> None:
        """Add the losses of a plan to the manifest and write it, so that they are detected only once.

        A failed run has no summary: each loss stays in a file until the summary of a later run reports it.
        """
        if plan.losses:
            for loss in plan.losses:
                write_loss(self.order.unreported, str(loss))
            self.archived = write_manifest(self.order.folder, self.archived.after_losses(plan.losses))

    def _size(self) -> tuple[int | None, int | None]:
        """Return the maximum entries and bytes of the next run."""
        if callable(self.session) and self.pace.interval is not None and not self.added.runs:
            return min(self.pace.entries or SMALL_ENTRIES, SMALL_ENTRIES), SMALL_BYTES
        return self.pace.entries, None

    def _write(self, ranges: Sequence[Range]) -> Write:
        """Return the function that reads and writes a run: in this process, or in Spark."""
        limits = self._options.min_partitions, self._options.max_entries_per_partition
        tasks = share_tasks(split(ranges, *limits), *limits)
        if callable(self.session):
            if are_small(ranges):
                return partial(write_here, self._options, tasks)
            self.session = self.session()
        return partial(write_in_spark, self.session, self._options, tasks)

    def _add(self, ranges: Sequence[Range], behind: int) -> None:
        """Add one run, which leaves ``behind`` entries, and report it."""
        begun = time.monotonic()
        self.archived, run = store_run(self._write(ranges), self.order, self.archived, ranges)
        self.added = self.added.after_run(run.parts, run.lost, run.files)
        self.unmoved.update(part.topic for part in run.parts if self.order.consume is not None)
        seconds = time.monotonic() - begun
        self._begun = -inf if behind and callable(self.session) else begun  # what a small run leaves follows at once
        self.report(run_record(self.added.runs, run, self.archived.rows, seconds, count_entries(ranges), behind))

    def _next_plan(self) -> ArchivePlan | None:
        """Plan the next run; wait if a continuous archive has too little for one.

        At the first call, an unreachable broker is an error; later, it is waited for. Returns None if ``stop`` ends
        that wait.
        """
        outage, is_out = Outage(0 if self._is_first else self._options.outage_timeout), False
        while True:
            found = asyncio.run(self._plan(outage, is_out))
            if isinstance(found, JMSError) is not is_out:
                is_out = not is_out
                self.report({"job": "archive", "unreachable": str(found) if is_out else None})
            if isinstance(found, ArchivePlan):
                if self._is_enough(found):
                    return found
            elif self.stop():
                return None
            time.sleep(_POLL)

    async def _plan(self, outage: Outage, was_out: bool) -> ArchivePlan | JMSError:
        """Return a plan that is large enough for a run, or the first after an outage; or the error of an outage."""
        try:
            async with connected_by(self._options) as (transport, configuration):
                while True:
                    plan = await plan_next(
                        transport, configuration, self.order, self.archived, self._options, may_miss=not self._is_first
                    )
                    self._is_first = False
                    await self._move_subscription(transport.admin, plan.stores)
                    outage.end()
                    if was_out or self._is_enough(plan):
                        return plan
                    await asyncio.sleep(_POLL)
        except JMSError as error:
            outage.note(error)
            return error

    def _is_enough(self, plan: ArchivePlan) -> bool:
        if self.pace.interval is None or plan.losses or self.stop():
            return True
        waited = time.monotonic() - self._begun
        return has_enough(count_entries(plan.ranges), self.pace.entries, waited, self.pace.interval)

    async def _move_subscription(self, admin: Admin | None, stores: Mapping[str, Stored]) -> None:
        """Move the subscription past the messages that the manifest counts; create it at the first call."""
        if self.order.consume is None:
            return
        if admin is None:
            raise ConfigurationError(
                "consume needs the broker's REST interface, which jms.usePulsarAdmin=false rules out"
            )
        if self._cursor is None:
            self._cursor = StreamCursor(admin, self.order.consume, False, "consume", "")
            await self._cursor.begin(stores, StartPosition.EARLIEST)
        self._cursor.admin = admin
        self.unmoved = set(await self._cursor.move(self.archived.ends(), stores, again=True))


def run_record(number: int, run: Manifest, archived: int, seconds: float, entries: int, behind: int) -> dict[str, Any]:
    """Return the record of a run.

    Args:
        number: number of the run in this call, from 1.
        run: manifest of what it added.
        archived: number of rows in the archive after it.
        seconds: duration of the run.
        entries: number of entries that it read.
        behind: number of entries that it left.

    Returns:
        ``rows`` and ``files`` of the run, ``archived`` (rows in all), ``lost`` (sentences), ``seconds`` of the run,
        ``rows_per_second``, ``entries_behind`` (remaining entries), and ``seconds_left`` for them at this speed,
        without new messages.
    """
    seconds = max(seconds, 0.001)
    return {
        "job": "archive",
        "run": number,
        "rows": run.rows,
        "files": run.files,
        "archived": archived,
        "lost": list(run.lost),
        "seconds": round(seconds, 3),
        "rows_per_second": round(run.rows / seconds, 1),
        "entries_behind": behind,
        "seconds_left": round(behind * seconds / max(entries, 1)),
    }


def pace_text(record: Mapping[str, Any]) -> str:
    """Format the record of a run or of an outage as a line."""
    if "unreachable" in record:
        reason = record["unreachable"]
        return "the broker answers again" if reason is None else f"waiting for the broker: {reason}"
    left = f", {record['seconds_left']} s left" if record["entries_behind"] else ""
    speed = f"{record['rows_per_second']}/s, {record['entries_behind']} entries behind{left}"
    return f"{record['run']} runs, {record['archived']} messages, {speed}"


def store_run(
    write: Write, order: ArchiveOrder, archived: Manifest, ranges: Iterable[Range]
) -> tuple[Manifest, Manifest]:  # fmt: skip
    """Add the rows of a run to the archive, completely or not at all.

    Args:
        write: writes the rows.
        order: the order.
        archived: manifest before the run.
        ranges: what was read, one range of each topic or partition.

    Returns:
        The manifest of the archive after the run, and that of what the run added.
    """
    staging = order.folder / _STAGING / archived.writer
    written = dict(write(staging))
    inspected = (ArchivedPart(topic=each.topic, start=each.start, end=each.end) for each in ranges)
    parts = join_parts(join_parts((), chain.from_iterable(written.values())), inspected)
    lost = tuple(sentence for sentence in read_losses(order.losses) if sentence not in archived.lost)
    places = {path: order.folder / path.parent.parent.name / path.parent.name for path in written}
    for path, place in places.items():
        place.mkdir(parents=True, exist_ok=True)
        path.rename(place / f"{archived.prefix}{path.name}")
    sync({order.folder, *places.values(), *(place.parent for place in places.values())})
    remove(staging)
    after = write_manifest(order.folder, archived.after_run(parts, lost))
    return after, order.manifest().after_run(parts, lost, len(written))


def describe_archive(order: ArchiveOrder) -> dict[str, Any]:
    """Describe what ``archive`` would read. Needs no session and writes nothing.

    Raises:
        As ``plan_archive``.
    """
    plan = plan_archive(order, _archived(order))
    partitions = [
        {**bounds_json(each), "entries": each.entries(), "bytes": weigh(each, plan.stores[each.topic].ledgers)}
        for each in plan.ranges
    ]
    return {
        "job": "archive",
        "dry_run": True,
        "destination": order.destination,
        "folder": str(order.folder),
        "entries": sum(each["entries"] for each in partitions),
        "bytes": sum(each["bytes"] for each in partitions),
        "lost": [str(loss) for loss in plan.losses],
        "partitions": partitions,
    }


@contextmanager
def open_archive(order: ArchiveOrder) -> Iterator[Manifest]:
    """Open and lock the archive of an order, after deleting the files of a crashed run.

    It is locked while the block runs: another run would delete the files of this one, or count them again. The lock
    applies to the processes of this machine, and to others if the file system supports such locks.

    Raises:
        ConfigurationError: the folder has an archive of something else.
        IllegalStateError: another run is active.
    """
    archived = _archived(order)  # before creating the folder
    if not isinstance(order.folder, Path):
        yield _claim(order.folder, archived)
        return
    new = [each for each in (order.folder, *order.folder.parents) if not each.exists()]
    order.folder.mkdir(parents=True, exist_ok=True)
    sync(each.parent for each in new)
    with (order.folder / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = f"another run archives into {order.folder}: wait for its end, or name another folder"
            raise IllegalStateError(reason) from None
        archived = _archived(order)
        for left in (order.folder / _STAGING, order.losses):
            remove(left)
        for path in order.folder.glob(f"*/*/{archived.prefix}*"):
            path.unlink()
        yield archived


def _claim(folder: StorePath, archived: Manifest) -> Manifest:
    """Take over an archive in a store, so that another run can't be added, and delete the files of such runs.

    They are listed before. Later ones can be those of a run that takes over next.
    """
    if archived.stored is None and any(folder.glob("destination=*/*/*.parquet")):
        raise ConfigurationError(f"{folder} has files of an archive, but no {NAME}: restore it, or name another folder")
    left = [path for path in folder.files() if not archived.has(path.name)]
    left += [path for name in (_STAGING, LOSSES) for path in (folder / name).files()]
    before = write_manifest(folder, attrs.evolve(archived, writer=uuid.uuid4().hex[:12]))
    claimed = write_manifest(folder, attrs.evolve(before, writer=uuid.uuid4().hex[:12]))
    for stored in (before.stored, None):  # a store that ignores either would let two runs be added
        with suppress(IllegalStateError):
            write_manifest(folder, attrs.evolve(before, stored=stored))
            raise ConfigurationError(
                f"{folder}: its store ignores the conditions If-Match and If-None-Match of writes, so two runs could "
                "archive the same messages: archive into a folder that is mounted here and on all workers"
            )
    for path in left:
        path.unlink()
    if archived.writer:
        remove(folder / _STAGING / archived.writer)
    return claimed


def _archived(order: ArchiveOrder) -> Manifest:
    archived = read_manifest(order.folder)
    if archived is None:
        return order.manifest()
    if archived.writer and not archived.runs:  # nothing was added by the call that wrote it
        return attrs.evolve(order.manifest(), stored=archived.stored)
    archived.check_same(order.manifest())
    return archived
