"""Every hazard of pulsar-client that is known: the naive code that shows it, and our transport that does not.

The naive programs (``naive/``) run in child processes, bounded in time. Where a hazard comes by chance, its test
records what happened and asserts nothing about the naive side.
"""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

import jmsaio.transport.pulsar
from jmsaio.config import DeadLetterPolicy, ProducerConfig, load
from jmsaio.errors import BrokerUnavailableError, ObjectClosedError
from jmsaio.testing import Command, FaultProxy
from jmsaio.transport.base import SenderOptions, SubscriptionType
from jmsaio.transport.pulsar import open_transport
from tests.kit.records import Outcomes, record, tell_each, texts
from tests.support.broker import TestBroker
from tests.transport.pulsar.conftest import HANG, Kit, new_topic, send

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
#: How often a program ends in a test; ``JMSAIO_TEST_ENDS`` sets it for a longer hunt.
ENDS = int(os.environ.get("JMSAIO_TEST_ENDS", "2"))
SOURCES = sorted(Path(jmsaio.transport.pulsar.__file__).parent.rglob("*.py"))

Record = Any


class Ended:
    """How a child process ended: its code (negative: the signal), what it said, whether it hung."""

    def __init__(self, code: int | None, output: str, errors: str) -> None:
        self.code = code
        self.lines = [line for line in output.splitlines() if not line.startswith("20")]  # native log lines: a date
        self.errors = errors

    @property
    def answer(self) -> Any:
        line = next(line for line in self.lines if line.startswith("{"))
        return json.JSONDecoder().raw_decode(line)[0]  # a native log line can end up behind it

    def __repr__(self) -> str:
        return f"code {self.code}, said {self.lines[-3:]}, {self.errors[-300:]}"


def run(folder: str, name: str, *arguments: str, timeout: float = 60) -> Ended:
    """Run a program; code None when it hung and was killed."""
    child = subprocess.Popen(
        [sys.executable, str(HERE / folder / f"{name}.py"), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,  # its children are killed with it
    )
    try:
        output, errors = child.communicate(timeout=timeout)
        return Ended(child.returncode, output, errors)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, errors = child.communicate()
        return Ended(None, output, errors)


async def naive(name: str, *arguments: str, timeout: float = 60) -> Ended:
    return await anyio.to_thread.run_sync(lambda: run("naive", name, *arguments, timeout=timeout))


async def ours(name: str, *arguments: str) -> Ended:
    return await anyio.to_thread.run_sync(lambda: run("ours", name, *arguments))


ABORTED = -signal.SIGABRT
#: What the programs' URLs end with; wire has the full run.
TRANSPORTS = [pytest.param("", id="pulsar-client"), pytest.param("?transport=wire", marks=pytest.mark.slow, id="wire")]


def calls(method: str) -> list[str]:
    """Where our code calls a method of that name."""
    return [
        f"{path.name}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == method
    ]


async def test_naive_code_loses_a_message_to_a_cancelled_receive(pulsar_broker: TestBroker) -> None:
    assert (await naive("cancelled_receive", pulsar_broker.service_url)).answer == {"got": ["m1", "m2"]}


async def test_nothing_is_lost_by_who_went_away(kit: Kit) -> None:
    """A receive is never cancelled natively: what an armed one brings is there for the next call."""
    box = await kit.box()
    with anyio.move_on_after(0.2):
        await box.take(1)
    await send(await kit.sender(), "m0", "m1", "m2")
    assert texts(await box.take(3)) == ["m0", "m1", "m2"]


async def test_naive_code_sends_what_it_cancelled(pulsar_broker: TestBroker) -> None:
    assert (await naive("cancelled_send", pulsar_broker.service_url)).answer == {"cancelled": True, "got": "cancelled"}


async def test_a_record_taken_has_an_outcome_whoever_waits(kit: Kit) -> None:
    """Sending has nothing to cancel: ``send`` takes the record, ``done`` tells the truth about it."""
    box = await kit.box()
    sender, outcomes = await kit.sender(), Outcomes()
    sender.send(record("x"), outcomes)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await sender.drain(HANG)
    await sender.drain(HANG)
    assert (len(outcomes.stored), outcomes.failures) == (1, [])
    assert texts(await box.take(1)) == ["x"]


async def test_naive_code_fails_in_a_callback_for_a_closed_loop(pulsar_broker: TestBroker) -> None:
    ended = await naive("late_callback", pulsar_broker.service_url)
    assert ended.code == ABORTED, ended


async def test_a_message_for_a_closed_loop_is_harmless(pulsar_broker: TestBroker) -> None:
    ended = await ours("closed_loop", pulsar_broker.service_url)
    assert (ended.code, ended.lines) == (0, ["survived"]), ended


async def test_raising_callback_naive(pulsar_broker: TestBroker) -> None:
    ended = await naive("raising_callback", pulsar_broker.service_url)
    assert ended.code == ABORTED, ended


async def test_close_callback_naive(pulsar_broker: TestBroker, record_property: Record) -> None:
    """By chance (about 1 in 10 with a busy process): recorded only."""
    ended = [await naive("close_async_at_exit", pulsar_broker.service_url) for _ in range(ENDS)]
    record_property("close_async at exit", [one.code for one in ended])


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_closed_programs_end_in_order(pulsar_broker: TestBroker, loop: str, transport: str) -> None:
    for _ in range(ENDS):
        url = pulsar_broker.service_url + transport
        ended = await ours("closed", url, *(["uvloop"] if loop == "uvloop" else []))
        assert (ended.code, ended.lines) == (0, ["ended"]), ended


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_program_that_closes_nothing_ends_in_order(pulsar_broker: TestBroker, transport: str) -> None:
    for _ in range(ENDS):
        ended = await ours("never_closed", pulsar_broker.service_url + transport)
        assert (ended.code, ended.lines) == (0, ["ended"]), ended


async def test_naive_code_blocks_the_loop(pulsar_broker: TestBroker, record_property: Record) -> None:
    answer = (await naive("blocked_loop", pulsar_broker.service_url)).answer
    record_property("blocked loop", answer)
    assert answer["failing"]["failed"] > 0


async def test_a_full_window_neither_blocks_nor_fails(kit: Kit) -> None:
    """Everything that may block runs natively without limits; the loop turns while the window is full."""
    sender = await kit.sender(window_records=50, config=ProducerConfig(batching_enabled=False))
    outcomes, turns = Outcomes(), 0
    for _ in range(1000):
        while sender.full:
            turns += 1
            await sender.ready()
        sender.send(record("x" * 100), outcomes)
    await sender.drain(HANG)
    assert (len(outcomes.stored), outcomes.failures) == (1000, [])
    assert turns > 10


async def test_full_queue_naive(pulsar_broker: TestBroker) -> None:
    answer = (await naive("full_queue", pulsar_broker.service_url)).answer
    assert answer["stored"] < answer["sent"]


async def test_a_burst_beyond_the_window_is_stored_whole(kit: Kit) -> None:
    sender, outcomes = await kit.sender(window_records=10), Outcomes()
    box = await kit.box()
    for number in range(2000):
        sender.send(record(str(number)), outcomes)
    await sender.drain(HANG)
    assert (len(outcomes.stored), outcomes.failures) == (2000, [])
    assert len(await box.take(2000)) == 2000


async def test_naive_code_deadlocks_in_flush(pulsar_broker: TestBroker, record_property: Record) -> None:
    """The interpreter stands still, heartbeat thread and all; by chance within the time, so recorded only."""
    ended = await naive("flush_deadlock", pulsar_broker.service_url, "6", timeout=12)
    record_property("flush deadlock", "hung" if ended.code is None else "not this time")


def test_nothing_native_is_called_that_holds_the_gil() -> None:
    """Bound without releasing the GIL: flush_async, redeliver-all, pause and resume, is_connected, last_sequence_id.

    is_connected takes a lock under which pulsar-client calls nothing of Python's, except while it unsubscribes a
    pattern (``PatternConsumer``), so the watch can call it. The producer of one partition takes none for
    last_sequence_id, so a sender can call it after its opening.
    """
    for method in (
        "redeliver_unacknowledged_messages",
        "pause_message_listener",
        "resume_message_listener",
        "message_listener",
        "message_router",
        "shutdown",
        "set_logger",
    ):
        assert calls(method) == [], method
    checked = ("watch.py", "missing.py", "native_consumers.py", "sender.py")
    assert [place for place in calls("is_connected") if not place.startswith(checked)] == []
    assert [place for place in calls("last_sequence_id") if not place.startswith("sender.py")] == []
    assert calls("flush_async") == []


async def test_draining_amid_sends_of_a_busy_loop(kit: Kit) -> None:
    """The rhythm that hangs the naive program: seven sends, nearly a millisecond of work, then the flush."""
    import time

    sender, outcomes = await kit.sender(), Outcomes()
    for _ in range(300):
        for _ in range(7):
            sender.send(record("x" * 100), outcomes)
        await anyio.lowlevel.checkpoint()
        busy = time.perf_counter() + 0.0009
        while time.perf_counter() < busy:
            pass  # the application computes
        with anyio.move_on_after(0.0005):
            await sender.drain(HANG)
    await sender.drain(HANG)
    assert (len(outcomes.stored), outcomes.failures) == (2100, [])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pattern_unsubscribe", "pattern_close"])
async def test_naive_code_crashes_with_a_pattern(pulsar_broker: TestBroker, record_property: Record, name: str) -> None:
    """By chance (3 of 4 and 1 of 3): recorded only."""
    record_property(name, (await naive(name, pulsar_broker.service_url)).code)


async def test_subscriptions_to_a_pattern_are_deleted_while_another_thread_computes(pulsar_broker: TestBroker) -> None:
    """Called in the loop's thread, ``unsubscribe_async`` crashes this program (3 of 4)."""
    ended = await ours("pattern_unsubscribe", pulsar_broker.service_url)
    assert (ended.code, ended.lines) == (0, ["ended"]), ended


async def test_naive_code_closes_by_chance(pulsar_broker: TestBroker, record_property: Record) -> None:
    """Ends at random: AlreadyClosed, Ok, or never; recorded only."""
    ended = await naive("pending_close", pulsar_broker.service_url)
    record_property("pending at close", repr(ended))


async def test_closing_ends_everything_that_waits(pulsar_broker: TestBroker, connect: Any) -> None:
    kit = await connect(pulsar_broker)
    boxes = [await kit.box(name=f"s{number}") for number in range(5)]
    for box in boxes:
        assert box.receiver.receive(1) == []
    senders = [await kit.sender() for _ in range(3)]
    outcomes = Outcomes()
    for sender in senders:
        for number in range(200):
            sender.send(record(str(number)), outcomes)
    ends: list[str] = []

    async def waits(call: Any) -> None:
        try:
            await call
            ends.append("ok")
        except ObjectClosedError:
            ends.append("closed")

    with anyio.fail_after(HANG):
        async with anyio.create_task_group() as tasks:
            for sender in senders:
                tasks.start_soon(waits, sender.drain(HANG))
                tasks.start_soon(waits, sender.ready())
            tasks.start_soon(waits, kit.transport.open_sender(new_topic(), SenderOptions(ProducerConfig(), tell_each)))
            await anyio.lowlevel.checkpoint()
            await kit.transport.aclose(10)
    assert len(outcomes) == 600
    assert len(ends) == 7


async def test_naive_code_fails_to_close_twice(pulsar_broker: TestBroker) -> None:
    answer = (await naive("close_twice", pulsar_broker.service_url)).answer
    assert {error for error, _ in answer.values()} == {"PulsarException"}
    assert "refused" not in answer["dead port"][1]


async def test_close_is_idempotent_and_clear(kit: Kit) -> None:
    box, sender = await kit.box(), await kit.sender()
    for _ in range(2):
        await box.receiver.aclose(5)
        await sender.aclose(5)
        await kit.transport.aclose(5)
    for call in (lambda: box.receiver.receive(1), lambda: sender.send(record("x"), lambda place, error: None)):
        with pytest.raises(ObjectClosedError):
            call()
    with pytest.raises(ObjectClosedError):
        await kit.box()
    with pytest.raises(ObjectClosedError):
        await kit.sender()


async def test_a_dead_port_is_named() -> None:
    with pytest.raises(BrokerUnavailableError, match=r"127\.0\.0\.1:1: .*refused") as caught:
        await open_transport(load("pulsar://127.0.0.1:1", connect_timeout=0.5))
    assert (caught.value.host, caught.value.port) == ("127.0.0.1", 1)


async def test_naive_code_with_a_python_logger_may_abort(pulsar_broker: TestBroker, record_property: Record) -> None:
    """By chance (2 of 25): recorded only."""
    ended = [await naive("python_logger", pulsar_broker.service_url) for _ in range(3)]
    record_property("python logger", [one.code for one in ended])


def test_no_python_logger_is_given_away() -> None:
    assert calls("set_logger") == []


async def test_naive_code_blocks_after_a_fork(pulsar_broker: TestBroker) -> None:
    assert (await naive("forked", pulsar_broker.service_url)).lines[-1:] == ["child blocked"]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_child_is_told_at_once(pulsar_broker: TestBroker, transport: str) -> None:
    ended = await ours("forked", pulsar_broker.service_url + transport)
    assert ended.lines == ["child refused 6", "child ended with 0", "second child ended with 0 in time"], ended
    assert ended.code == 0


async def test_naive_code_waits_for_the_batching_delay(pulsar_broker: TestBroker, record_property: Record) -> None:
    record_property("sequential sends", (await naive("slow_defaults", pulsar_broker.service_url)).answer)


async def test_a_lone_record_leaves_in_the_next_turn(kit: Kit) -> None:
    """Nothing waits for a group to fill; the batching delay is 1 ms, not 10."""
    sender, outcomes = await kit.sender("non-persistent://public/default/" + kit.topic.rpartition("/")[2]), Outcomes()
    for _ in range(50):
        sender.send(record("x"), outcomes)
        await sender.drain(HANG)
    assert len(outcomes) == 50
    assert ProducerConfig().batching_max_publish_delay == 0.001


async def test_hidden_failure_naive(pulsar_broker: TestBroker) -> None:
    """The message that was too large is gone and nobody knows. The same built message twice is refused, too."""
    answer = (await naive("hidden_failure", pulsar_broker.service_url)).answer
    assert answer == {"answers": ["Ok"], "got": ["a", "b"], "same message again": ["InvalidMessage"]}


async def test_naive_code_receives_a_delayed_message_before_an_earlier_one(pulsar_broker: TestBroker) -> None:
    answer = (await naive("delayed_overtakes", pulsar_broker.service_url)).answer
    assert answer == {"order": ["second, delayed", "first"]}


async def test_the_last_answer_of_naive_code_hides_the_other_partitions(pulsar_broker: TestBroker) -> None:
    ended = await naive("partitions_hide", pulsar_broker.service_url, pulsar_broker.web_service_url)
    assert len(ended.answer["partitions"]) > 1


async def test_one_group_never_spans_partitions(kit: Kit) -> None:
    """Own answers for each partition: every id told is of the partition that the record went to."""
    admin = kit.transport.admin
    assert admin is not None
    await admin.create_topic(kit.topic, 3)
    box, sender = await kit.box(), await kit.sender()
    told: dict[str, int] = {}
    for number in range(300):
        sender.send(
            record(str(number)),
            lambda place, error, text=str(number): told.update({text: place.partition} if place is not None else {}),
        )
    await sender.drain(HANG)
    real = {text: one.message_id.partition for one in await box.take(300) for text in texts([one])}
    assert told
    assert {text: real[text] for text in told} == told


async def test_redeliver_all_naive(pulsar_broker: TestBroker) -> None:
    got = (await naive("redeliver_all", pulsar_broker.service_url)).answer["got"]
    assert len(got) > len(set(got))


@pytest.mark.parametrize("kind", [SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER])
async def test_giving_everything_back_brings_nothing_twice(kit: Kit, kind: SubscriptionType) -> None:
    """Recover on an ordered subscription: the prefetch stays where it is and the order is kept."""
    box = await kit.box(kind)
    numbers = [str(number) for number in range(20)]
    await send(await kit.sender(), *numbers)
    records = await box.take(5)
    box.receiver.negative_acknowledge(records, 0)
    await anyio.sleep(0.1)
    assert texts(await box.take(20)) == numbers
    await box.nothing()


async def test_a_naive_negative_acknowledgement_brings_its_neighbours_again(pulsar_broker: TestBroker) -> None:
    assert (await naive("neighbours_come_again", pulsar_broker.service_url)).answer["came again"] != ["2"]


async def test_neighbours_do_not_come_again(kit: Kit) -> None:
    box = await kit.box()
    await send(await kit.sender(), *"01234")
    records = await box.take(5)
    box.receiver.negative_acknowledge([records[2]], 0.1)
    assert texts(await box.take(1)) == ["2"]
    await box.nothing()


async def test_dead_batch_naive(pulsar_broker: TestBroker, record_property: Record) -> None:
    """How many of the neighbours die with it depends on timing: recorded; the poison is among them."""
    dead = (await naive("dead_batch", pulsar_broker.service_url)).answer["dead"]
    record_property("dead batch", dead)
    assert "poison" in dead


async def test_only_the_poison_dies(kit: Kit) -> None:
    dead_topic = new_topic("dead")
    dead = await kit.box(SubscriptionType.SHARED, dead_topic)
    box = await kit.box(dead_letter=DeadLetterPolicy(max_redeliver_count=1, dead_letter_topic=dead_topic))
    await send(await kit.sender(), "good", "poison", "fine")
    for count in (3, 1):
        for one in await box.take(count):
            if one.payload == b"poison":
                box.receiver.negative_acknowledge([one], 0.1)
            else:
                box.receiver.acknowledge([one])
    [letter] = await dead.take(1)
    assert letter.payload == b"poison"
    await dead.nothing()
    await box.nothing()


async def test_a_refused_second_batch_ends_the_process() -> None:
    """The program for pulsar-client's maintainers shows it without broker, network fault and jmsaio."""
    program = Path(__file__).parent / "naive" / "refused_second_batch.py"
    assert "jmsaio" not in program.read_text(encoding="utf-8")
    ended = await naive("refused_second_batch", "", timeout=60)
    assert ended.code == -signal.SIGSEGV, "pulsar-client survived: the guides may say so"


async def test_damaged_batch_naive(pulsar_broker: TestBroker) -> None:
    """A damaged batch behind others on their way ends the process, and we can't prevent it; the guide says so."""
    codes = []
    for _ in range(6):  # whether the one before is confirmed already is a matter of microseconds
        async with FaultProxy.of(pulsar_broker.service_url) as proxy:
            proxy.flip(Command.SEND, skip=50, times=50)
            codes.append((await naive("damaged_batch", proxy.url, timeout=20)).code)
        if codes[-1] == -signal.SIGSEGV:
            return
    raise AssertionError(f"pulsar-client survived: {codes}; the guide may say so")
