"""A stream into files whose processes are killed: ``python -m tests.spark.kill --rounds N``.

With ``--transactions`` a queue takes the place of the files, and each micro-batch is sent in one transaction.

Each round has a topic, files and a checkpoint of its own. A driver streams the topic into files while messages are
sent and the topic is unloaded, so that the broker begins new ledgers and deletes those that the subscription has
passed. Then one of three is killed: every process of the driver's group, a Python worker while Spark runs a task, or
any of Spark's Python processes in whatever it does. What is left of the stream, or a new driver, reads the rest
(``availableNow``), and the files are compared with what was sent.

A driver that lives goes on with the next round: to start one takes longer than a round.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import shutil
import tempfile
import uuid
from collections import Counter
from pathlib import Path

import attrs
import httpx

import jmsaio
from tests.spark.kill_driver import END, PATIENCE, TASK, Driver, Order, drivers, kill
from tests.support.broker import SERVICE_URL, WEB_URL, TestBroker, external_broker

PARTITIONS = 2
WHAT = ("group", "task", "worker")
#: Messages that are sent before the driver has stored its first batch, at most.
AHEAD = 150


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


async def send(url: str, queue: str, sent: list[str], streaming: asyncio.Event, stop: asyncio.Event) -> None:
    """Send about 30 messages a second, no more than ``AHEAD`` before they are read, and 50 when it is to stop."""
    async with jmsaio.connect(url) as connection, connection.create_session() as here:
        producer = await here.create_producer(here.create_queue(queue))
        rest = 50
        while rest:
            if len(sent) >= AHEAD:
                await streaming.wait()
            rest -= stop.is_set()
            try:
                await producer.send(jmsaio.TextMessage(str(len(sent))))
            except jmsaio.SendInDoubtError:  # the broker takes long to load the topic again
                continue
            sent.append(str(len(sent)))
            await asyncio.sleep(0 if stop.is_set() else 0.03)


async def unload(admin: httpx.AsyncClient, queue: str, chance: random.Random, sent: list[str]) -> None:
    """Unload partitions, one at a time: the broker closes their ledgers, and deletes those that nobody needs.

    Between two unloads a message is stored: otherwise nothing could be read on a machine that loads topics slowly.
    """
    while True:
        before = len(sent)
        await asyncio.sleep(chance.uniform(0.5, 1.5))
        while len(sent) == before:
            await asyncio.sleep(0.05)
        await admin.put(f"{queue}-partition-{chance.randrange(PARTITIONS)}/unload")


async def kill_something(driver: Driver, folder: Path, what: str, chance: random.Random) -> str:
    """Kill the driver's group, or one Python process of Spark's; its command."""
    if what == "group":
        await driver.kill_group()
        return what
    if what == "task":
        driver.tell(TASK)
        await driver.wait_for(folder, "task", 0.001)
    async with asyncio.timeout(PATIENCE):
        while not (workers := driver.workers(for_tasks=what == "task")):  # they come and go
            await asyncio.sleep(0.01)
    chosen = chance.choice(sorted(workers))
    kill([chosen])
    return workers[chosen].split("-m ")[-1].strip()


async def run_round(
    broker: TestBroker,
    driver: Driver,
    what: str,
    chance: random.Random,
    keep: Path | None = None,
    transactions: bool = False,
) -> Round:
    """One round.

    Args:
        broker: a running one.
        driver: of the rounds before, if it lives.
        what: one of ``WHAT``.
        chance: decides when, and which worker.
        keep: folder to keep a round in that found something.
        transactions: stream into a queue, a micro-batch in one transaction, in place of files.
    """
    queue, folder = f"kill-{uuid.uuid4().hex[:12]}", Path(tempfile.mkdtemp(prefix="jmsaio-kill-"))
    base = f"{broker.web_service_url}/admin/v2/persistent/public/default/"
    target = f"{queue}-out" if transactions else ""
    since = len(driver.said())
    async with httpx.AsyncClient(base_url=base, timeout=60) as admin:
        (await admin.put(f"{queue}/partitions", json=PARTITIONS)).raise_for_status()
        good = False
        try:
            killed, after, sent = await _stream_and_kill(broker.url, driver, queue, folder, what, chance, admin, target)
            rows = json.loads((folder / "done").read_text(encoding="utf-8"))
            stats = (await admin.get(f"{queue}/partitioned-stats")).json()
            texts, places = {text for text, _ in rows}, Counter(place for _, place in rows)
            found = Round(
                killed, driver.said(since).count("Lost task "), after, len(sent),
                [text for text in sent if text not in texts], [place for place, count in places.items() if count > 1],
                stats["subscriptions"]["follower"]["msgBacklog"],
            )  # fmt: skip
            good = found.good
            return found
        finally:
            if not good and keep is not None:
                (folder / "log").write_text(driver.said(since), encoding="utf-8")
                shutil.copytree(folder, keep / queue)
            shutil.rmtree(folder)
            await admin.delete(f"{queue}/partitions", params={"force": True})


async def _stream_and_kill(
    url: str,
    driver: Driver,
    queue: str,
    folder: Path,
    what: str,
    chance: random.Random,
    admin: httpx.AsyncClient,
    target: str,
) -> tuple[str, float, list[str]]:
    """Until all is read: what was killed, seconds between the first batch and the kill, and what was sent."""
    sent: list[str] = []
    streaming, stop = asyncio.Event(), asyncio.Event()
    sending = asyncio.create_task(send(url, queue, sent, streaming, stop))
    unloading = asyncio.create_task(unload(admin, queue, chance, sent))
    try:
        driver.follow(Order(queue, str(folder), once=False, target=target))
        await driver.wait_for(folder, "checkpoint/commits/0")
        streaming.set()
        after = chance.uniform(0, 4)
        await asyncio.sleep(after)
        killed = await kill_something(driver, folder, what, chance)
        await asyncio.sleep(0.5)
        unloading.cancel()
        stop.set()
        await asyncio.wait_for(sending, PATIENCE)
        driver.tell(END)
        with contextlib.suppress(RuntimeError):  # one that lives may notice later that something of it was killed
            await driver.wait_for(folder, "done")
        if not (folder / "done").exists():
            driver.end()
            driver.follow(Order(queue, str(folder), once=True, target=target))
            await driver.wait_for(folder, "done")
    finally:
        unloading.cancel()
        sending.cancel()
        if not (folder / "done").exists():
            driver.end()  # nobody knows what it is at
    return killed, after, sent


async def run_rounds(
    broker: TestBroker, rounds: int, seed: int, keep: Path | None = None, together: int = 1, transactions: bool = False
) -> list[Round]:
    """Some rounds, which kill one after the other; each is printed.

    Args:
        broker: a running one.
        rounds: how many.
        seed: of what is left to chance.
        keep: folder to keep rounds in that found something.
        together: how many run at once, each with a driver of its own.
        transactions: as ``run_round``.
    """

    async def one(driver: Driver, number: int) -> Round:
        what = WHAT[number % len(WHAT)]
        try:
            found = await run_round(broker, driver, what, random.Random(f"{seed} {number}"), keep, transactions)
        except RuntimeError as error:
            found = Round(what, 0, 0, 0, [], [], 0, str(error))
        print(f"round {number}: {found}", flush=True)
        return found

    waiting = iter(range(rounds))

    async def some(driver: Driver) -> list[Round]:
        return [await one(driver, number) for number in waiting]

    with drivers(broker.url, together) as running:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(some(driver)) for driver in running]
    return [found for task in tasks for found in task.result()]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--together", type=int, default=1, help="rounds that run at once (default 1)")
    parser.add_argument("--keep", type=Path, help="folder for the files and checkpoints of rounds that found something")
    parser.add_argument("--transactions", action="store_true", help="stream into a queue in transactions, not files")
    given = parser.parse_args()
    broker = external_broker()
    if broker is None:
        raise SystemExit(f"name a running broker with {SERVICE_URL} and {WEB_URL} (jmsaio broker start)")
    found = asyncio.run(run_rounds(broker, given.rounds, given.seed, given.keep, given.together, given.transactions))
    bad = [one for one in found if not one.good]
    print(
        f"{len(found)} rounds, {sum(one.sent for one in found)} messages, {sum(one.tasks > 0 for one in found)} kills "
        f"of a worker in a task: {len(bad)} rounds with a loss, a repetition or an error"
    )
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
