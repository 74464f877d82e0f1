"""A driver of Spark that streams queues into files or queues and is killed: one side of ``tests.spark.kill``."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tests.spark import session
from tests.support.watcher import tell_watcher

#: Seconds for each wait of a round, so that a round that fails says where before the test's limit of 15 minutes.
PATIENCE = 200.0
#: What the driver is told besides orders: to say when a task runs, and to stop the stream and read the rest.
TASK, END = b"task\n", b"end\n"


@attrs.frozen
class Order:
    """What a driver is to do, as a line of JSON.

    Attributes:
        queue: to read.
        folder: for files and checkpoint.
        once: read what is there; else stream until a line says to stop, and then read the rest.
        target: queue to stream into in transactions; "" for files.
    """

    queue: str
    folder: str
    once: bool
    target: str = ""

    def line(self) -> bytes:
        return json.dumps(attrs.asdict(self)).encode() + b"\n"


def drive(url: str) -> None:
    """Stream queues, one after another, as standard input says."""
    spark = session.start()
    spark.sparkContext.setLogLevel("WARN")  # the log says which tasks failed
    while (line := next_line()) != END:
        order = Order(**json.loads(line))
        folder = Path(order.folder)
        follow(spark, url, order)
        if order.target:
            found = spark.read.format("jms").options(url=url, queue=order.target).load()
            rows = found.selectExpr("text", "JMSCorrelationID AS place").collect()
        else:
            rows = spark.read.schema("text STRING, place STRING").json(str(folder / "files")).collect()
        (folder / "rows").write_text(json.dumps([(row.text, row.place) for row in rows]), encoding="utf-8")
        (folder / "rows").rename(folder / "done")


def follow(spark: SparkSession, url: str, order: Order) -> None:
    """Stream one queue into files or a queue until a line says to read the rest, and read it."""
    folder = Path(order.folder)
    options = {"url": url, "queue": order.queue, "startingOffsets": "earliest", "subscription": "follower"}

    def writer(limit: int) -> DataStreamWriter:
        frame = spark.readStream.format("jms").options(**options, columns="text, topic, position")
        rows = frame.option("maxEntriesPerTrigger", limit).load()
        rows = rows.selectExpr("text", "concat(topic, '@', position.ledger, ':', position.entry) AS place")
        if order.target:
            rows = rows.withColumnRenamed("place", "JMSCorrelationID")
            sink = rows.writeStream.format("jms").options(url=url, queue=order.target, transaction="true")
        else:
            sink = rows.writeStream.format("json").option("path", str(folder / "files"))
        return sink.option("checkpointLocation", str(folder / "checkpoint"))

    def read_the_rest() -> None:
        writer(300).trigger(availableNow=True).start().awaitTermination()

    if not order.once:
        query = session.patiently(lambda: writer(10).start())
        while (line := next_line(0.1)) != END:
            if line == TASK:
                wait_for_task(spark)
                (folder / "task").touch()
            if query.isActive:
                continue
            if "failed to connect back" not in str(query.exception()):
                raise SystemExit(f"the stream ended: {query.exception()}")
            query = session.patiently(lambda: writer(10).start())
        query.stop()
    session.patiently(read_the_rest)


def next_line(seconds: float | None = None) -> bytes:
    """The next line on standard input, nothing when none comes; its end is ``END``.

    Lines come one at a time: each is sent when what the one before asked for is done.
    """
    return (os.read(0, 4096) or END) if select.select([0], [], [], seconds)[0] else b""


def wait_for_task(spark: SparkSession) -> None:
    """Wait until a task runs."""
    tracker = spark.sparkContext.statusTracker()
    stages = (tracker.getStageInfo(number) for _ in itertools.count() for number in tracker.getActiveStageIds())
    next(stage for stage in stages if stage is not None and stage.numActiveTasks)


@attrs.define
class Driver:
    """A driver in a session and process group of its own; where it was killed, the next round starts another one.

    Attributes:
        url: of the broker.
        log: file for what it and Spark print.
    """

    url: str
    log: Path
    _process: subprocess.Popen[bytes] | None = None

    def follow(self, order: Order) -> None:
        """Have the process of now, or a new one, do something."""
        if self._process is None or self._process.poll() is not None:
            self.end()
            self._process = self._start()
        self.tell(order.line())

    def tell(self, line: bytes) -> None:
        """Write a line to a process that may be gone."""
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def workers(self, for_tasks: bool) -> dict[int, str]:
        """Spark's Python processes, or those of them that run tasks, and what they run."""
        assert self._process is not None
        found = processes_of(self._process.pid)
        found.pop(self._process.pid, None)
        return {number: command for number, command in found.items() if is_worker(number, found, for_tasks)}

    async def kill_group(self) -> None:
        """Kill every process of its group; those of its session that lead groups of their own may outlive it."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        await asyncio.to_thread(self._process.wait)

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.kill_driver", self.url], cwd=session.ROOT,
                env=session.environment(), start_new_session=True, stdin=subprocess.PIPE, stdout=log, stderr=log,
            )  # fmt: skip
        tell_watcher("runs", process.pid)
        return process

    def end(self) -> None:
        """End all its processes at once, also those that outlived their driver."""
        process, self._process = self._process, None
        if process is not None:
            end_session(process)
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()

    async def wait_for(self, folder: Path, name: str, step: float = 0.05) -> None:
        """Wait until it has written a file.

        Raises:
            RuntimeError: it ended before, or took too long.
        """
        process, end = self._process, time.monotonic() + PATIENCE
        while not (folder / name).exists():
            if process is None or process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"no {name} of the driver:\n{self.said()[-4000:]}")
            await asyncio.sleep(step)

    def said(self, since: int = 0) -> str:
        """What it and Spark printed, from that place of the log on."""
        return self.log.read_bytes()[since:].decode(errors="replace") if self.log.exists() else ""


@contextlib.contextmanager
def drivers(url: str, count: int) -> Iterator[list[Driver]]:
    """Some drivers, none of whose processes outlives the block."""
    with tempfile.TemporaryDirectory(prefix="jmsaio-kill-") as folder:
        found = [Driver(url, Path(folder, f"log-{number}")) for number in range(count)]
        try:
            yield found
        finally:
            for each in found:
                each.end()


def end_session(process: subprocess.Popen[bytes]) -> None:
    """End every process of the session that a process began, and make sure that none is left.

    One that is killed may have started another one since its session was looked at: Spark's JVM starts Python
    processes at any time, and such an orphan would wait for ever for a JVM that is gone. So it is looked at again.

    Raises:
        RuntimeError: there are still some after a minute.
    """
    end = time.monotonic() + 60
    clear = 0
    while clear < 2:  # twice: a process that starts while the list is made may be missing in it
        found = processes_of(process.pid)
        if found and time.monotonic() > end:
            raise RuntimeError(f"these processes do not end: {found}")
        kill(found)
        clear = 0 if found else clear + 1
        time.sleep(0.01)
    process.wait()
    tell_watcher("ended", process.pid)


def processes_of(number: int) -> dict[int, str]:
    """The processes of a session, and what they run."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == number and fields[0] != "Z":
                    command = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    found[int(folder.name)] = " ".join(command)
    return found


def is_worker(number: int, found: dict[int, str], for_tasks: bool) -> bool:
    """Whether a process is one of Spark's Python processes, or one of those that run tasks: children of a daemon.

    Those that plan have daemons, too, of other modules.
    """
    if not for_tasks:
        return "pyspark." in found[number]
    with contextlib.suppress(OSError):
        parent = int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])
        return found[number].strip().endswith("pyspark.worker") and found.get(parent) == found[number]
    return False


def kill(numbers: Iterable[int]) -> None:
    """End processes at once."""
    for number in numbers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


if __name__ == "__main__":
    drive(sys.argv[1])
