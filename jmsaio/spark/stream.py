"""A stream reader: Spark's calls, answered by a planner."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from jmsaio.spark.planning.batch_planning import source_of
from jmsaio.spark.planning.stream_planning import StreamPlanner
from jmsaio.spark.task import TaskReader
from jmsaio.spark.worker import Worker

T = TypeVar("T")


class StreamReader(TaskReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of a destination, batch by batch. Spark creates one object to plan and one, pickled, for the tasks."""

    _worker: Worker | None = None
    _planner: StreamPlanner | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset where a new query starts."""
        return self._run(lambda planner: planner.initial())

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return a limit that Spark passes to ``latestOffset``, which reads the actual limits from the options.

        It is never ``ReadAllAvailable``: only the trigger ``once`` passes that, and it must not end without a batch
        while the broker is unreachable.
        """
        options = self._options
        if options.max_entries_per_trigger is not None:
            return ReadMaxRows(options.max_entries_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        return ReadMinRows(options.min_entries_per_trigger or 1)

    def prepareForTriggerAvailableNow(self) -> None:
        """Limit the query to the messages stored now."""
        self._run(lambda planner: planner.freeze())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the next batch. Spark calls it only after the batch ending at ``start`` is committed."""
        return self._run(lambda planner: planner.latest(start, limited=not isinstance(limit, ReadAllAvailable)))

    def reportLatestOffset(self) -> dict[str, Any]:
        """Return the broker's newest offset, for the progress of the query."""
        return self._run(lambda planner: planner.report())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return one partition for each task of a batch."""
        if start == end:
            return []
        return self._tasks(self._run(lambda planner: planner.ranges(start, end)))

    def commit(self, end: dict[str, Any]) -> None:
        """Do nothing: Spark calls it a batch late, never for the last one. ``latestOffset`` moves the subscription."""

    def stop(self) -> None:
        """Disconnect from the broker."""
        worker, self._worker, self._planner = self._worker, None, None
        if worker is not None:
            worker.close()

    def _run(self, call: Callable[[StreamPlanner], Coroutine[Any, Any, T]]) -> T:
        """Call the planner, creating it on first use; tasks never have one."""
        if self._worker is None or self._planner is None:
            # Spark ends this process with SIGTERM, and calls stop() only after a return.
            signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
            self._worker = Worker.open(self._options)
            source = source_of(self._options, self._worker.configuration)
            self._planner = StreamPlanner(self._worker.transport, source, self._options)
        return self._worker.run(call(self._planner))
