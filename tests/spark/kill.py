"""A stream into files whose processes are killed: ``python -m tests.spark.kill --rounds N``.

Each round has a topic, files and a checkpoint of its own. A driver streams the topic into files while messages are
sent and the topic is unloaded, so that the broker begins new ledgers and deletes those that the subscription has
passed. Then one of three is killed: every process of the driver's group, a Python worker while Spark runs a task, or
any of Spark's Python processes in whatever it does. What is left of the stream, or a new driver, reads the rest
(``availableNow``), and the files are compared with what was sent.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import httpx
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import jmsaio
from tests.spark import session
from tests.support.broker import SERVICE_URL, WEB_URL, TestBroker, external_broker

PARTITIONS = 2
#: Seconds for a driver to store its first batch, or to read the rest.
PATIENCE = 300.0
WHAT = ("group", "task", "worker")
#: What the driver is told: to say when a task runs, and to read the rest and end.
TASK, END = b"task\n", b"end\n"


@attrs.frozen
class Round:
    """What one round found.

    Attributes:
        killed: ``group``, or the command of the process that was killed.
        tasks: how many tasks of Spark failed by it, as the driver's log says; they are tried again. A driver that is
            killed says nothing of its tasks.
        after: seconds between the first batch and the kill.
        sent: messages.
        missing: those that are in no file.
        twice: places whose message is there more than once. A message that the broker stored twice has two: its sender
            sends it again when the topic is unloaded.
        backlog: entries that the subscription still has.
        error: why a driver ended before its time; "" where none did.
    """

    killed: str
    tasks: int
    after: float
    sent: int
    missing: list[str]
    twice: list[str]
    backlog: int
    error: str = ""

    @property
    def good(self) -> bool:
        """Each message once, and the subscription behind the last."""
        return not (self.missing or self.twice or self.backlog or self.error)


def drive(url: str, queue: str, folder: Path, once: bool) -> None:
    """Stream a queue into files until a line on standard input says to read the rest and end."""
    spark = session.start()
    spark.sparkContext.setLogLevel("WARN")  # the log says which tasks failed
    options = {"url": url, "queue": queue, "startingOffsets": "earliest", "subscription": "follower"}

    def writer(limit: int) -> DataStreamWriter:
        frame = spark.readStream.format("jms").options(**options, columns="text, topic, position")
        rows = frame.option("maxEntriesPerTrigger", limit).load()
        rows = rows.selectExpr("text", "concat(topic, '@', position.ledger, ':', position.entry) AS place")
        files = rows.writeStream.format("json").option("path", str(folder / "files"))
        return files.option("checkpointLocation", str(folder / "checkpoint"))

    def read_the_rest() -> None:
        writer(300).trigger(availableNow=True).start().awaitTermination()

    if not once:
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
    rows = spark.read.schema("text STRING, place STRING").json(str(folder / "files")).collect()
    (folder / "rows").write_text(json.dumps([(row.text, row.place) for row in rows]), encoding="utf-8")
    (folder / "rows").rename(folder / "done")


def next_line(seconds: float) -> bytes:
    """The next line on standard input, nothing when none comes; its end is ``END``."""
    return (os.read(0, 100) or END) if select.select([0], [], [], seconds)[0] else b""


def wait_for_task(spark: SparkSession) -> None:
    """Wait until a task runs."""
    tracker = spark.sparkContext.statusTracker()
    stages = (tracker.getStageInfo(number) for _ in itertools.count() for number in tracker.getActiveStageIds())
    next(stage for stage in stages if stage is not None and stage.numActiveTasks)


@contextlib.contextmanager
def driver(broker: TestBroker, queue: str, folder: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A driver in a session and process group of its own, none of whose processes outlives the block."""
    command = [sys.executable, "-m", "tests.spark.kill", "--drive", broker.url, queue, str(folder), *more]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=session.ROOT, env=session.environment(), start_new_session=True,
            stdin=subprocess.PIPE, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield process
    finally:
        kill(processes_of(process.pid))
        process.wait()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


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
    """Whether a process is one of Spark's Python processes, or one of those that run tasks: children of a daemon."""
    if not for_tasks:
        return "pyspark." in found[number]
    with contextlib.suppress(OSError):
        parent = int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])
        return "pyspark.daemon" in found[number] and "pyspark.daemon" in found.get(parent, "")
    return False


def kill(numbers: Sequence[int] | dict[int, str]) -> None:
    """End processes at once."""
    for number in numbers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def tell(process: subprocess.Popen[bytes], line: bytes) -> None:
    """Write a line to a driver that may be gone."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(line)
        process.stdin.flush()


async def wait_for(folder: Path, name: str, process: subprocess.Popen[bytes], step: float = 0.05) -> None:
    """Wait until a driver has written a file."""
    end = time.monotonic() + PATIENCE
    while not (folder / name).exists():
        if process.poll() is not None or time.monotonic() > end:
            log = (folder / "log").read_text(encoding="utf-8", errors="replace")
            raise RuntimeError(f"no {name} of the driver ({process.returncode}):\n{log[-4000:]}")
        await asyncio.sleep(step)


async def send(url: str, queue: str, sent: list[str], stop: asyncio.Event) -> None:
    """Send about 30 messages a second, and 50 more when it is to stop."""
    async with jmsaio.connect(url) as connection, connection.create_session() as here:
        producer = await here.create_producer(here.create_queue(queue))
        rest = 50
        while rest:
            rest -= stop.is_set()
            try:
                await producer.send(jmsaio.TextMessage(str(len(sent))))
            except jmsaio.SendInDoubtError:  # the broker takes long to load the topic again
                continue
            sent.append(str(len(sent)))
            await asyncio.sleep(0 if stop.is_set() else 0.03)


async def unload(admin: httpx.AsyncClient, queue: str, chance: random.Random) -> None:
    """Unload partitions, one at a time: the broker closes their ledgers, and deletes those that nobody needs."""
    while True:
        await asyncio.sleep(chance.uniform(0.5, 1.5))
        await admin.put(f"{queue}-partition-{chance.randrange(PARTITIONS)}/unload")


async def kill_something(process: subprocess.Popen[bytes], folder: Path, what: str, chance: random.Random) -> str:
    """Kill the driver's group, or one Python process of Spark's; its command."""
    if what == "group":
        os.killpg(process.pid, signal.SIGKILL)
        await asyncio.to_thread(process.wait)
        return what
    if what == "task":
        tell(process, TASK)
        await wait_for(folder, "task", process, 0.001)
    workers: list[int] = []
    while not workers:  # they come and go
        found = processes_of(process.pid)
        workers = [number for number in found if number != process.pid and is_worker(number, found, what == "task")]
        await asyncio.sleep(0 if workers else 0.01)
    chosen = chance.choice(sorted(workers))
    kill([chosen])
    return found[chosen].split("-m ")[-1].strip()


async def run_round(broker: TestBroker, what: str, chance: random.Random, keep: Path | None = None) -> Round:
    """One round.

    Args:
        broker: a running one.
        what: one of ``WHAT``.
        chance: decides when, and which worker.
        keep: folder to keep a round in that found something.
    """
    queue, folder = f"kill-{uuid.uuid4().hex[:12]}", Path(tempfile.mkdtemp(prefix="jmsaio-kill-"))
    base = f"{broker.web_service_url}/admin/v2/persistent/public/default/"
    async with httpx.AsyncClient(base_url=base, timeout=60) as admin:
        (await admin.put(f"{queue}/partitions", json=PARTITIONS)).raise_for_status()
        good = False
        try:
            found = await _stream_and_kill(broker, queue, folder, what, chance, admin)
            good = found.good
            return found
        finally:
            if not good and keep is not None:
                shutil.copytree(folder, keep / queue)
            shutil.rmtree(folder)
            await admin.delete(f"{queue}/partitions", params={"force": True})


async def _stream_and_kill(
    broker: TestBroker, queue: str, folder: Path, what: str, chance: random.Random, admin: httpx.AsyncClient
) -> Round:
    sent: list[str] = []
    stop = asyncio.Event()
    sending = asyncio.create_task(send(broker.url, queue, sent, stop))
    unloading = asyncio.create_task(unload(admin, queue, chance))
    try:
        with driver(broker, queue, folder) as process:
            await wait_for(folder, "checkpoint/commits/0", process)
            after = chance.uniform(0, 4)
            await asyncio.sleep(after)
            killed = await kill_something(process, folder, what, chance)
            await asyncio.sleep(0.5)
            unloading.cancel()
            stop.set()
            await sending
            await _read_the_rest(process, folder)
        if not (folder / "done").exists():
            with driver(broker, queue, folder, "--once") as process:
                await wait_for(folder, "done", process)
    finally:
        unloading.cancel()
        sending.cancel()
    rows = json.loads((folder / "done").read_text(encoding="utf-8"))
    texts, places = {text for text, _ in rows}, Counter(place for _, place in rows)
    tasks = (folder / "log").read_text(encoding="utf-8", errors="replace").count("Lost task ")
    stats = (await admin.get(f"{queue}/partitioned-stats")).json()
    return Round(
        killed, tasks, after, len(sent), [text for text in sent if text not in texts],
        [place for place, count in places.items() if count > 1], stats["subscriptions"]["follower"]["msgBacklog"],
    )  # fmt: skip


async def _read_the_rest(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Let a driver that survived end in order; it may notice later that something of it was killed."""
    tell(process, END)
    with contextlib.suppress(RuntimeError):
        await wait_for(folder, "done", process)


async def run_rounds(
    broker: TestBroker, rounds: int, seed: int, keep: Path | None = None, together: int = 1
) -> list[Round]:
    """Some rounds, which kill one after the other; each is printed.

    Args:
        broker: a running one.
        rounds: how many.
        seed: of what is left to chance.
        keep: folder to keep rounds in that found something.
        together: how many run at once.
    """
    room = asyncio.Semaphore(together)

    async def one(number: int) -> Round:
        what = WHAT[number % len(WHAT)]
        async with room:
            try:
                found = await run_round(broker, what, random.Random(f"{seed} {number}"), keep)
            except RuntimeError as error:
                found = Round(what, 0, 0, 0, [], [], 0, str(error))
        print(f"round {number}: {found}", flush=True)
        return found

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(one(number)) for number in range(rounds)]
    return [each.result() for each in running]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--together", type=int, default=1, help="rounds that run at once (default 1)")
    parser.add_argument("--keep", type=Path, help="folder for the files and checkpoints of rounds that found something")
    parser.add_argument("--drive", nargs=3, metavar=("URL", "QUEUE", "FOLDER"), help=argparse.SUPPRESS)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.drive is not None:
        url, queue, folder = given.drive
        drive(url, queue, Path(folder), given.once)
        return
    broker = external_broker()
    if broker is None:
        raise SystemExit(f"name a running broker with {SERVICE_URL} and {WEB_URL} (jmsaio broker start)")
    found = asyncio.run(run_rounds(broker, given.rounds, given.seed, given.keep, given.together))
    bad = [one for one in found if not one.good]
    print(
        f"{len(found)} rounds, {sum(one.sent for one in found)} messages, {sum(one.tasks > 0 for one in found)} kills "
        f"of a worker in a task: {len(bad)} rounds with a loss, a repetition or an error"
    )
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
