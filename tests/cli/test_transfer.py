"""``jmsaio move``, ``jmsaio copy`` and ``jmsaio purge``."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
import pytest

import jmsaio
from jmsaio.cli.app import main
from jmsaio.cli.common.output import Output, write_outcome
from jmsaio.cli.transfer import perform
from jmsaio.config import load
from jmsaio.errors import InvalidDestinationError, NotFoundError
from jmsaio.maintenance.dead_letters import require_admin
from jmsaio.maintenance.transfer import Transfer, TransferRequest
from jmsaio.model.destinations import Queue
from jmsaio.model.topic_names import COPY_PREFIX
from jmsaio.model.wire import ReceivedRecord
from jmsaio.transport.base import Admin, Cursor, StartPosition
from jmsaio.transport.registry import connected
from tests.kit.records import texts as bodies
from tests.support.broker import TestBroker
from tests.transport.contract.harness import Harness


async def fill(url: str, queue: str, *texts: str) -> dict[str, tuple[str | None, int]]:
    """Send messages; return the id and timestamp of each text."""
    found = {}
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        producer = await session.create_producer(session.create_queue(queue))
        for number, text in enumerate(texts):
            message = session.create_text_message(text)
            await producer.send(message, properties={"number": number})
            found[text] = (message.jms_message_id, message.jms_timestamp)
    return found


async def waiting(url: str, queue: str) -> list[Any]:
    """Return the messages of a queue, which stay there."""
    async with (
        jmsaio.connect(url, auto_start=False) as connection,
        connection.create_session() as session,
        session.create_browser(session.create_queue(queue)) as browser,
    ):
        return [message async for message in browser.stream()]


async def texts(url: str, queue: str) -> list[str]:
    return [message.text for message in await waiting(url, queue)]


async def start(*command: str) -> asyncio.subprocess.Process:
    """Start a command in its own process."""
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "jmsaio", *command, "--json", stdout=asyncio.subprocess.DEVNULL
    )


async def interrupt(
    admin: Admin, command: list[str], target: str, number: signal.Signals, later: float, stored: int = 1,
    times: int = 1,
) -> None:  # fmt: skip
    """Start a command, and send it signals some seconds after it has stored some messages, unless it ends before."""
    topic = f"persistent://public/default/{target}"

    async def entries() -> int:
        try:
            return sum(one.entries for one in await admin.ledgers(topic))
        except NotFoundError:
            return 0

    before, process = await entries(), await start(*command)
    async with asyncio.timeout(60):
        while process.returncode is None and await entries() < before + stored:
            await asyncio.sleep(0.005)
    await asyncio.sleep(later)
    for _ in range(times):
        if process.returncode is None:
            process.send_signal(number)
            await asyncio.sleep(0.05)
    await process.wait()


async def carry(url: str, kind: Transfer, source: str, target: str | None, **more: Any) -> int:
    to = None if target is None else Queue(target)
    request = TransferRequest(destination=Queue(source), to=to, transfer=kind, patience=2.0, **more)
    output = Output(as_json=True)
    return write_outcome(output, await perform(load(url), request, output))


async def test_a_moved_message_keeps_its_id_timestamp_and_properties(url: str, name: Callable[[str], str]) -> None:
    source, target = name("source"), name("target")
    async with jmsaio.connect(url):
        sent = await fill(url, source, "a", "b", "c")
        assert await carry(url, Transfer.MOVE, source, target, selector="number > 0") == 0
        assert await texts(url, source) == ["a"]
        moved = await waiting(url, target)
        assert {one.text: (one.jms_message_id, one.jms_timestamp) for one in moved} == {
            text: sent[text] for text in ("b", "c")
        }
        assert [one.get_int_property("number") for one in moved] == [1, 2]


async def test_a_copied_message_is_in_both_queues(url: str, name: Callable[[str], str]) -> None:
    source, target = name("source"), name("target")
    async with jmsaio.connect(url):
        await fill(url, source, "a", "b", "c")
        assert await carry(url, Transfer.COPY, source, target, selector="number < 2") == 0
        assert await texts(url, source) == ["a", "b", "c"]
        assert await texts(url, target) == ["a", "b"]


async def test_purge_deletes_what_is_selected(url: str, name: Callable[[str], str]) -> None:
    source = name("source")
    async with jmsaio.connect(url):
        await fill(url, source, "a", "b", "c")
        assert await carry(url, Transfer.PURGE, source, None, selector="number <> 1") == 0
        assert await texts(url, source) == ["b"]
        assert await carry(url, Transfer.PURGE, source, None) == 0
        assert await texts(url, source) == []


@pytest.mark.parametrize("kind", [Transfer.MOVE, Transfer.COPY, Transfer.PURGE])
async def test_a_dry_run_changes_nothing(
    kind: Transfer, url: str, name: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = name("source"), None if kind is Transfer.PURGE else name("target")
    async with jmsaio.connect(url):
        await fill(url, source, "a", "b")
        assert await carry(url, kind, source, target, dry_run=True) == 0
        assert json.loads(capsys.readouterr().out)["sent"] == 2
        assert await texts(url, source) == ["a", "b"]


async def test_a_consumer_goes_on_after_a_purge_and_nothing_is_redelivered(
    url: str, name: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The five messages that it holds are deleted; it can still acknowledge them."""
    source = name("source")
    client = jmsaio.AcknowledgeMode.CLIENT
    async with jmsaio.connect(url) as connection, connection.create_session(client) as session:
        queue = session.create_queue(source)
        consumer = await session.create_consumer(queue)
        await fill(url, source, *"abcde")
        held = [await consumer.receive(timeout=30) for _ in range(5)]
        assert all(held)
        assert await carry(url, Transfer.PURGE, source, None) == 0
        assert json.loads(capsys.readouterr().out)["sent"] == 5
        assert await texts(url, source) == []
        await session.acknowledge()
        await fill(url, source, "later")
        later = await consumer.receive(timeout=30)
        assert later is not None
        assert later.get_body(str) == "later"
        await later.acknowledge()
        await consumer.close()
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        async with session.create_consumer(session.create_queue(source)) as consumer:
            assert await consumer.receive(timeout=1) is None


async def test_what_a_closed_consumer_held_during_a_purge_is_gone(url: str, name: Callable[[str], str]) -> None:
    source = name("source")
    client = jmsaio.AcknowledgeMode.CLIENT
    async with jmsaio.connect(url), jmsaio.connect(url) as connection, connection.create_session(client) as session:
        consumer = await session.create_consumer(session.create_queue(source))
        await fill(url, source, *"abcde")
        assert all([await consumer.receive(timeout=30) for _ in range(5)])
        assert await carry(url, Transfer.PURGE, source, None) == 0
        await consumer.close()
        async with connection.create_session() as other, other.create_consumer(other.create_queue(source)) as next_one:
            assert await next_one.receive(timeout=1) is None


async def test_a_limit_stops_at_exactly_that_many(url: str, name: Callable[[str], str]) -> None:
    source, target = name("source"), name("target")
    async with jmsaio.connect(url):
        await fill(url, source, "a", "b", "c")
        assert await carry(url, Transfer.MOVE, source, target, limit=1) == 0
        assert (await texts(url, source), await texts(url, target)) == (["b", "c"], ["a"])


async def test_a_queue_is_not_its_own_target(url: str, name: Callable[[str], str]) -> None:
    source = name("source")
    async with jmsaio.connect(url):
        await fill(url, source, "a")
        with pytest.raises(InvalidDestinationError, match="name another destination"):
            await carry(url, Transfer.MOVE, source, source)
        with pytest.raises(NotFoundError):
            await carry(url, Transfer.MOVE, name("none"), source)
        assert await texts(url, source) == ["a"]


@pytest.mark.parametrize("command", [["move", "a", "b"], ["purge", "a"]])
def test_without_a_terminal_yes_is_required(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "-u", "pulsar://127.0.0.1:1"]) == 2
    assert "--yes" in capsys.readouterr().err


@pytest.mark.broker
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("kind", ["move", "copy"])
async def test_an_interrupted_command_loses_nothing(
    kind: str, number: signal.Signals, pulsar_broker: TestBroker, name: Callable[[str], str]
) -> None:
    """Every message is in at least one queue after each interrupt, and the next run finishes the work."""
    url, source, target, seed = pulsar_broker.url, name("source"), name("target"), random.randrange(10**6)
    chance, sent = random.Random(seed), {str(index) for index in range(2000)}
    await fill(url, source, *sorted(sent))
    command = [kind, source, target, "-u", url, *(["--yes"] if kind == "move" else [])]
    async with connected(load(url)) as transport:
        for _ in range(3):
            await interrupt(require_admin(transport), command, target, number, chance.uniform(0, 0.2))
            here, there = set(await texts(url, source)), set(await texts(url, target))
            assert here | there == sent, f"seed {seed}"
            assert kind == "move" or here == sent, f"seed {seed}"
    process = await start(*command)
    assert await process.wait() == 0
    assert set(await texts(url, target)) == sent, f"seed {seed}"
    assert set(await texts(url, source)) == (set() if kind == "move" else sent), f"seed {seed}"


async def records(harness: Harness, queue: str) -> list[ReceivedRecord]:
    """Return all records of a queue's topic."""
    reader, found = await harness.reader(f"persistent://public/default/{queue}"), list[ReceivedRecord]()
    while not await reader.at_end():
        found += await reader.read(1000, 30)
    await reader.aclose(30)
    return found


@attrs.frozen
class CopyState:
    """What a copy has done: how often each message is in the target, and which ones are not recorded as copied."""

    copies: Counter[str]
    unrecorded: frozenset[str]

    @classmethod
    async def read(cls, harness: Harness, source: str, target: str) -> CopyState:
        """Wait until the broker has handled everything that an interrupted copy sent, then read."""
        here, there = (f"persistent://public/default/{queue}" for queue in (source, target))
        async with asyncio.timeout(60):
            while True:
                stats = (await harness.admin.stats(here)).subscriptions
                own = [one for one in stats.values() if one.name.startswith(COPY_PREFIX)]
                if not any(one.consumers for one in own) and not (await harness.admin.stats(there)).producers:
                    break
                await asyncio.sleep(0.05)
        cursor = await harness.admin.cursor(here, own[0].name) if own else Cursor(None)
        rest = [one for one in await records(harness, source) if not cursor.is_acknowledged(one.message_id)]
        return cls(Counter(bodies(await records(harness, target))), frozenset(bodies(rest)))


@pytest.mark.broker
@pytest.mark.parametrize(("number", "times"), [(signal.SIGINT, 2), (signal.SIGKILL, 1)])
async def test_an_interrupted_copy_continues_where_it_stopped(
    number: signal.Signals, times: int, pulsar_broker: TestBroker, name: Callable[[str], str]
) -> None:
    """A message is copied again only if its copy had not been recorded."""
    url, source, target = pulsar_broker.url, name("source"), name("target")
    sent = [str(index) for index in range(10000)]
    # One message per entry: otherwise the copy is complete before it can be interrupted.
    command = ["copy", source, target, "-u", url, "-o", "producerConfig.batchingEnabled=false"]
    harness = await Harness.start(load(url))
    try:
        for queue in (source, target):
            topic = f"persistent://public/default/{queue}"
            await harness.admin.create_subscription(topic, "jms-queue", StartPosition.EARLIEST)
        sender = await harness.sender(f"persistent://public/default/{source}", batching_enabled=False)
        await harness.send(sender, *sent)
        await sender.aclose(30)
        before, unrecorded = CopyState(Counter(), frozenset(sent)), list[int]()
        for stored in (1, 3000, None):
            if stored is None:
                assert await (await start(*command)).wait() == 0
            else:
                await interrupt(harness.admin, command, target, number, 0, stored, times)
            after = await CopyState.read(harness, source, target)
            again = after.copies - before.copies
            assert set(again) <= before.unrecorded
            assert max(again.values(), default=0) <= 1
            unrecorded.append(len(after.unrecorded))
            before = after
        assert any(0 < count < len(sent) for count in unrecorded), unrecorded
        assert set(before.copies) == set(sent)
        most = len(sent) if number is signal.SIGKILL else 20  # after Ctrl-C, even pressed twice, hardly any
        assert before.copies.total() - len(sent) < most
    finally:
        await harness.stop()
