"""The one session of a run, and the measuring of its queries in this process."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Final, Self

import attrs
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession, functions as f

from benchmarks.child import run_task
from benchmarks.meter import Metrics
from benchmarks.runner import ROOT, MeasurementError, measure
from benchmarks.spark.messages import SOURCE, work_of
from benchmarks.spark.processes import cpu_of, jvm_of, tasks_cpu
from benchmarks.spark.sources import ReadySource, TupleSource
from benchmarks.workload import Task
from jmsaio.errors import JMSError
from jmsaio.spark.session import open_session

#: Two tasks at a time; one that fails is not tried again.
_MASTER: Final = "local[2]"
_SETTINGS: Final = {"spark.driver.memory": "1g", "spark.log.level": "OFF"}
#: Targets of this package that are measured in the process of the session.
_IN_SESSION: Final = ("benchmarks.spark.reading:", "benchmarks.spark.streaming:", "benchmarks.spark.writing:")
#: Whatever a query may raise.
_FAILED: Final = (PySparkException, Py4JError, JMSError, RuntimeError, OSError)


class SessionRun:
    """Carries out the tasks of a run; those of Spark in one session, which begins with the first of them.

    A context manager, whose end stops the session.

    Args:
        settings: Spark's own, besides those of every run.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self._settings = {**_SETTINGS, **(settings or {})}
        self._stack = contextlib.ExitStack()
        self._filled: set[str] = set()
        self._session: SparkSession | None = None
        self._few: DataFrame | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def __call__(self, task: Task, timeout: float) -> Metrics:
        """Carry out a task. Raises MeasurementError."""
        source = task.extra.get(SOURCE)
        if source is not None and source not in self._filled:
            measure(attrs.evolve(task, target="benchmarks.spark.messages:fill"), timeout)
            self._filled.add(source)
        if not task.target.startswith(_IN_SESSION):
            return measure(task, timeout)
        session = self._open(task)
        watch = threading.Timer(timeout, session.sparkContext.cancelAllJobs)
        watch.start()
        try:
            return run_task(task)
        except _FAILED as error:
            raise MeasurementError(f"{task.target}: {error}") from error
        finally:
            watch.cancel()

    def _open(self, task: Task) -> SparkSession:
        if self._session is None:
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
            session = self._session = self._stack.enter_context(open_session(_MASTER, self._settings))
            session.dataSource.register(ReadySource)
            session.dataSource.register(TupleSource)
            frame = ready(task, "read", tasks=2)
            for _ in range(2):  # the JVM compiles what both tasks of a query run
                frame.write.format("noop").mode("overwrite").save()
            self._few = ready(task, "read", tasks=2, rows=2)
        else:
            assert self._few is not None
            # Spark ends a task's process after a minute without work; a new one begins with seconds of imports.
            self._few.write.format("noop").mode("overwrite").save()
        return self._session


def the_session() -> SparkSession:
    """Return the session of the run."""
    session = SparkSession.getActiveSession()
    if session is None:
        raise RuntimeError("there is no session of Spark")
    return session


def ready(task: Task, kind: str, **options: object) -> DataFrame:
    """Ready batches of a row's workload."""
    return the_session().read.format("ready").options(**(ready_options(task, kind) | _texts(options))).load()


def ready_options(task: Task, kind: str) -> dict[str, str]:
    """Options of the source ``ready`` for a row's workload."""
    work = work_of(task)
    return _texts({"rows": work.messages, "characters": work.characters, "kind": kind})


def _texts(options: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in options.items()}


@attrs.define
class Costs:
    """What a query took.

    Attributes:
        seconds: from its start to its end.
        cpu: CPU seconds of the Python processes of its tasks.
        jvm_cpu: CPU seconds of the JVM.
    """

    seconds: float = 0.0
    cpu: float = 0.0
    jvm_cpu: float = 0.0

    def metrics(self, rows: int) -> Metrics:
        """Rate and cost of a row."""
        return {
            "per_second": rows / self.seconds,
            "wall_us": self.seconds / rows * 1e6,
            "cpu_us": self.cpu / rows * 1e6,
            "jvm_cpu_us": self.jvm_cpu / rows * 1e6,
        }


@contextlib.contextmanager
def metered() -> Iterator[Costs]:
    """Measure what the session does in the block."""
    session, costs = the_session(), Costs()
    jvm = jvm_of(session)
    cpu, jvm_cpu, began = tasks_cpu(session), cpu_of(jvm), time.perf_counter()
    yield costs
    costs.seconds = time.perf_counter() - began
    costs.cpu, costs.jvm_cpu = tasks_cpu(session) - cpu, cpu_of(jvm) - jvm_cpu


def run_query(frame: DataFrame, rows: int, write: Callable[[DataFrame], None], wanted: int | None = None) -> Metrics:
    """Measure a query.

    Args:
        frame: what is read.
        rows: messages that count for rate and cost.
        write: carries it out.
        wanted: rows that must come; None: ``rows``.

    Raises:
        RuntimeError: other rows came.
    """
    seen = Observation()
    frame = frame.observe(seen, f.count(f.lit(1)).alias("rows"))
    with metered() as costs:
        write(frame)
    found = seen.get["rows"]
    if found != (rows if wanted is None else wanted):
        raise RuntimeError(f"{found} rows came")
    return costs.metrics(rows)
