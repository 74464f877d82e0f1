"""``NativeLog`` with the real pulsar-client: who hears it, what casts doubt, forks, copies, floods."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import _pulsar
import anyio
import pytest

from jmsaio.errors import (
    BrokerUnavailableError,
    ConsumerBusyError,
    NotFoundError,
    ObjectClosedError,
    OperationTimeoutError,
    TransportError,
)
from jmsaio.transport.base import StartPosition
from jmsaio.transport.pulsar.admin import paths
from jmsaio.transport.pulsar.native.binding import native_log as module
from jmsaio.transport.pulsar.native.binding.bridge import Bridge
from jmsaio.transport.pulsar.native.binding.native_log import (
    REFUSALS,
    Attempts,
    Damage,
    NativeLog,
    Pipe,
    Refusal,
    ask_again,
    casts_doubt,
)
from jmsaio.transport.pulsar.native.binding.results import translate
from jmsaio.transport.pulsar.native.consumers import subscriber
from tests.kit.native_fakes import OK, from_thread
from tests.kit.records import texts
from tests.transport.pulsar.conftest import HANG, Kit, new_topic, send

NOWHERE = "pulsar://127.0.0.1:1"
TOPIC = "persistent://public/default/t"
FENCED = (
    "2026-11-22 02:10:48.791 WARN  [11] ClientConnection:1731 | [127.0.0.1:1 -> 127.0.0.1:2] Received error response"
    " from server: Retryable (Subscription is fenced) -- req_id: 7\n"
)
REFUSED = (
    f"2026-11-22 02:10:48.791 WARN  [11] ConsumerImpl:381 | [{TOPIC}, jms-queue, 3] Temporary error in creating"
    " consumer: Retryable\n"
)


def own_log() -> NativeLog:
    """A log into which a test writes."""
    log = NativeLog()
    log._pipe = Pipe.make()
    return log


def write(log: NativeLog, text: str) -> None:
    """As pulsar-client writes."""
    assert log._pipe is not None
    os.write(log._pipe.writing, text.encode())


def run(code: str, **variables: str) -> str:
    """What a Python process of its own prints: pulsar-client's log is one a process."""
    head = (
        "import _pulsar, os\n"
        "from jmsaio.transport.pulsar.native.binding.native_log import NATIVE_LOG as log\n"
        "def client():\n"
        "    configuration = _pulsar.ClientConfiguration()\n"
        "    log.direct(configuration)\n"
        f"    return _pulsar.Client({NOWHERE!r}, configuration)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", head + code], capture_output=True, text=True, timeout=60, env={**os.environ, **variables}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_pulsar_client_logs_is_read_at_once() -> None:
    code = "print(log.captures(client()), log.count)"
    assert run(code) == "True 3"


def test_a_client_that_was_made_before_keeps_the_log() -> None:
    """pulsar-client takes the first logger of a process and no other."""
    code = (
        "other = _pulsar.ClientConfiguration(); other.set_file_logger(_pulsar.LoggerLevel.Warn, '/dev/null')\n"
        f"first = _pulsar.Client({NOWHERE!r}, other)\n"
        "print(log.captures(client()))"
    )
    assert run(code) == "False"


def test_on_windows_the_log_is_not_read_and_not_printed() -> None:
    assert run("import sys; sys.platform = 'win32'; print(log.captures(client()))") == "False"


@pytest.mark.parametrize("debug", [True, False])
def test_more_is_logged_if_the_logger_wants_it(caplog: pytest.LogCaptureFixture, debug: bool) -> None:
    caplog.set_level(logging.DEBUG if debug else logging.INFO)
    levels: list[object] = []

    class Configuration:
        def set_file_logger(self, level: object, path: str) -> None:
            levels.append(level)

    configuration: Any = Configuration()
    NativeLog().direct(configuration)
    assert levels == [_pulsar.LoggerLevel.Info if debug else _pulsar.LoggerLevel.Warn]
    log = own_log()
    write(log, FENCED)
    log.read()
    assert ("Subscription is fenced" in caplog.text) is debug


def test_a_child_process_has_a_log_of_its_own() -> None:
    """Nothing of the child's reaches the parent, and the child hears what pulsar-client says there."""
    code = (
        "one = client(); log.captures(one); before = log.read()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(7 if log.captures(client()) else 1)\n"
        "status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "print(status, log.read() == before, log.captures(one))"
    )
    assert run(code) == "7 True True"


def test_a_flood_never_blocks_pulsar_client() -> None:
    """The pipe is emptied while the interpreter does something else."""
    code = (
        "one = client()\n"
        "for _ in range(5000): one.get_topic_partitions_async('jmsaio://', lambda *_: None)\n"
        "print(log.read() >= 15000)"
    )
    assert run(code) == "True"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("ClientConnection", "[127.0.0.1:1 -> 127.0.0.1:2] Received send error from server: checksum failed"),
        ("ProducerImpl", "batchMessageAndSend | Failed to createOpSendMsg: MessageTooBig"),
        ("ProducerImpl", "[t, p] Backlog is exceeded on topic. Sending exception to producer"),
        ("ProducerImpl", "[t, p] something that nobody has seen yet"),
    ],
)
def test_lines_that_cast_doubt(source: str, text: str) -> None:
    assert casts_doubt("WARN", source, text)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("ProducerImpl", "[t, p] Failed to reconnect producer: NotConnected"),
        ("ClientConnection", "[a -> b] Connection closed with Disconnected"),
        ("ConsumerImpl", "[t, s, 0] Failed to reconnect consumer: Retryable"),
    ],
)
def test_lines_that_cast_none(source: str, text: str) -> None:
    assert not casts_doubt("WARN", source, text)


def test_what_a_producer_tells_for_information_casts_no_doubt() -> None:
    assert not casts_doubt("INFO", "ProducerImpl", "[t, p] Created producer on broker")


def test_what_pulsar_client_has_in_its_library() -> None:
    """The words that are looked for are those of the installed version."""
    library = next(Path(_pulsar.__file__).parent.glob("pulsar_client.libs/libpulsar*")).read_bytes()
    words = (b"Received send error from server: ", b"Failed to createOpSendMsg: ", b"Backlog is exceeded on topic")
    assert [one for one in words if one not in library] == []


def test_lines_in_parts_and_lines_that_are_none() -> None:
    log = own_log()
    write(log, "2026-01-02 03:04:05.006 WARN  [12] ProducerImpl:7 | [t, p] some")
    assert log.read() == 0
    write(log, "thing\nnot of this form\n")
    assert (log.read(), log.doubts) == (2, 1)


def test_a_refusal_is_found_with_the_brokers_reason() -> None:
    """Those of other topics and subscriptions, and older ones, are not taken for it."""
    log = own_log()
    write(log, FENCED + REFUSED)
    assert log.refusal(0, TOPIC, "jms-queue") == Refusal("Retryable", "Subscription is fenced")
    assert log.refusal(0, None, "jms-queue") == log.refusal(0, TOPIC, None) == log.refusal(0, None, None)
    assert log.refusal(0, f"{TOPIC}2", "jms-queue") is None
    assert log.refusal(0, TOPIC, "other") is None
    assert log.refusal(log.read(), TOPIC, "jms-queue") is None


def test_a_refusal_of_a_consumer_that_comes_back() -> None:
    """It is told apart from that of a new one."""
    log = own_log()
    gone = FENCED.replace("Retryable (Subscription is fenced)", "TopicNotFound (Topic t does not exist)")
    write(log, gone)
    refused = REFUSED.replace("Temporary error in creating", "Failed to reconnect")
    write(log, refused.replace("Retryable", "TopicNotFound"))
    assert log.refusal(0, TOPIC, "jms-queue", "consumer") == Refusal("TopicNotFound", "Topic t does not exist")
    assert log.refusal(0, None, "jms-queue", "consumer") is not None
    assert log.refusal(0, TOPIC, "other", "consumer") is None
    assert log.refusal(log.read(), TOPIC, "jms-queue", "consumer") is None
    assert log.refusal(0, TOPIC, "jms-queue") is None


def test_topics_that_are_refused_are_found() -> None:
    """A look-up, and a producer that comes back; the last refusal of each topic counts."""
    log = own_log()
    head = "2026-11-24 00:38:51.137 ERROR [11]"
    write(log, f"{head} BinaryProtoLookupService:1 | Lookup failed for {TOPIC}, result ServiceUnitNotReady\n")
    write(log, f"{head} ProducerImpl:1 | [{TOPIC}, p-1] Failed to reconnect producer: AuthorizationError its words\n")
    write(log, f"{head} BinaryProtoLookupService:1 | Lookup failed for {TOPIC}2, result AuthorizationError no right\n")
    right = Refusal("AuthorizationError", "its words")
    assert log.refusals_of_topics(0) == {TOPIC: right, f"{TOPIC}2": Refusal("AuthorizationError", "no right")}
    assert log.refusals_of_topics(log.read()) == {}


def test_the_reason_is_that_of_the_same_thread() -> None:
    """What another connection was told is no reason for this one."""
    log = own_log()
    write(log, FENCED.replace("[11]", "[12]") + REFUSED)
    found = log.refusal(0, TOPIC, "jms-queue")
    assert found == Refusal("Retryable", "")
    other = REFUSED.replace("Temporary error in creating", "Ignoring the late answer for")
    write(log, FENCED + other + REFUSED)  # nor what it was told about something else before
    assert log.refusal(0, TOPIC, "jms-queue") == found
    assert str(found) == "[Retryable]"
    assert str(Refusal("Retryable", "Subscription is fenced")) == "Subscription is fenced [Retryable]"


def test_a_limited_number_of_refusals_is_stored() -> None:
    log = own_log()
    log._parse(REFUSED.encode() * (REFUSALS + 1))
    assert (log.count, len(log._refusals)) == (REFUSALS + 1, REFUSALS)
    assert str(log.refusal(REFUSALS, TOPIC, "jms-queue")) == "[Retryable]"


@pytest.mark.parametrize("taken", [True, False])
def test_a_damaged_message_that_pulsar_client_acknowledged(caplog: pytest.LogCaptureFixture, taken: bool) -> None:
    """Who listens is told; it is logged where nobody takes care of it."""
    place = f"[{TOPIC}, s, t, 0] Discarding corrupted message at 7747:1"
    line = f"2026-11-22 03:25:50.463 ERROR [140380502746816] ConsumerImpl:930 | {place}"
    log, told = NativeLog(), list[Damage]()

    def listen(damage: Damage) -> bool:
        told.append(damage)
        return taken

    log.on_damage = listen
    log._parse(line.encode() + b"\n")
    assert told == [Damage(TOPIC, "s, t", 7747, 1)]
    assert [record.levelname for record in caplog.records] == ([] if taken else ["ERROR"])
    assert all(f"7747:1 of {TOPIC} " in record.getMessage() for record in caplog.records)


def test_what_a_path_is_written_to_arrives() -> None:
    pipe = Pipe.make()
    assert pipe.read() == b""
    with open(f"/dev/fd/{pipe.writing}", "a") as file:
        file.write("words")
    assert pipe.wait()
    assert pipe.read() == b"words"


def test_writers_of_an_inherited_pipe_write_into_the_new_one() -> None:
    """As in a child process, where pulsar-client goes on with the descriptor that it has."""
    old = Pipe.make()
    kept = os.dup(old.writing)
    old.close()
    new = Pipe.make(old.identity)
    os.write(kept, b"words")
    assert new.read() == b"words"
    os.close(kept)


def test_another_file_under_its_number_is_left_alone() -> None:
    """A program that closed all descriptors, as daemons do, may have opened its own there."""
    pipe = Pipe.make()
    ours, theirs = socket.socketpair()
    number = pipe.reading
    os.dup2(ours.fileno(), number)
    theirs.send(b"precious")
    assert (pipe.read(), pipe.wait()) == (b"", False)
    pipe.close()
    assert os.read(number, 100) == b"precious"
    os.close(number)
    ours.close()
    theirs.close()


@pytest.mark.parametrize("number", [-1, 1 << 20])
def test_a_closed_number_is_no_pipe(number: int) -> None:
    pipe = Pipe.make()
    gone = Pipe(number, pipe.writing, pipe.identity)
    assert gone.read() == b""


BUSY = _pulsar.Result.ConsumerBusy


class Native:
    """Starts attempts, which answer when told."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[..., None]] = []
        self.discarded: list[Any] = []

    def start(self, callback: Callable[..., None]) -> None:
        self.callbacks.append(callback)

    def answer(self, index: int, *answer: Any) -> None:
        from_thread(self.callbacks[index], *answer)

    def attempts(self, timeout: float = HANG) -> Attempts[Any]:
        what, discard = "subscribe s to t", self.discarded.append
        return Attempts(Bridge(), self.start, what, timeout, discard, topic=TOPIC, subscription="jms-queue")

    async def started(self, count: int) -> None:
        with anyio.fail_after(HANG):
            while len(self.callbacks) < count:
                await anyio.sleep(0.01)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[NativeLog]:
    """A log of the test's own."""
    log = own_log()
    monkeypatch.setattr(module, "NATIVE_LOG", log)
    yield log


async def test_a_refused_attempt_is_repeated(log: NativeLog) -> None:
    """The refusal is read in the log; the next attempt is answered, and what still comes of the first is closed."""
    native = Native()
    task = asyncio.ensure_future(native.attempts().run())
    await native.started(1)
    write(log, FENCED + REFUSED)
    await native.started(2)
    native.answer(1, OK, "second")
    assert await task == "second"
    native.answer(0, OK, "first")
    await anyio.sleep(0.01)
    assert native.discarded == ["first"]


async def test_a_silent_attempt_is_repeated(log: NativeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without a word in the log; the first to answer is taken, be it the first that was started."""
    monkeypatch.setattr(module, "ATTEMPT", 0.05)
    native = Native()
    task = asyncio.ensure_future(native.attempts().run())
    await native.started(3)
    native.answer(0, OK, "slow")
    assert await task == "slow"
    native.answer(1, OK, "later")
    await anyio.sleep(0.01)
    assert native.discarded == ["later"]


async def test_no_answer_in_time_says_why(log: NativeLog) -> None:
    """The error carries the broker's reason."""
    native = Native()
    task = asyncio.ensure_future(native.attempts(0.3).run())
    await native.started(1)
    write(log, FENCED + REFUSED)
    with pytest.raises(OperationTimeoutError, match=r"within 0\.3 s; .*: Subscription is fenced \[Retryable\]"):
        await task
    with pytest.raises(OperationTimeoutError, match=r"within 0\.01 s$"):
        await native.attempts(0.01).run()


async def test_a_missing_subscription_is_told_at_once(log: NativeLog) -> None:
    """Nothing but its creation changes that."""
    native = Native()
    task = asyncio.ensure_future(native.attempts().run())
    await native.started(1)
    words = "SubscriptionNotFound (Subscription does not exist)"
    write(log, FENCED.replace("Retryable (Subscription is fenced)", words))
    write(log, REFUSED.replace("Retryable", "SubscriptionNotFound"))
    with pytest.raises(NotFoundError, match=r"\(Subscription does not exist\)") as caught:
        await task
    assert caught.value.error_code == "SubscriptionNotFound"
    assert len(native.callbacks) == 1


async def test_busy_with_an_earlier_attempt(log: NativeLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow broker gave the place to the first attempt: its answer is waited for."""
    monkeypatch.setattr(module, "ATTEMPT", 0.05)
    native = Native()
    task = asyncio.ensure_future(native.attempts().run())
    await native.started(2)
    native.answer(1, BUSY, None)
    await anyio.sleep(0.01)
    native.answer(0, OK, "first")
    assert await task == "first"
    monkeypatch.setattr(module, "_GRACE", 0.01)
    task = asyncio.ensure_future(native.attempts().run())
    await native.started(4)
    native.answer(3, BUSY, None)
    with pytest.raises(ConsumerBusyError):
        await task


async def test_answers_that_are_errors(log: NativeLog) -> None:
    """They are raised as they come; a time-out of pulsar-client's own is one of ours."""
    native = Native()
    for index, (answer, kind) in enumerate(
        [(_pulsar.Result.ConnectError, BrokerUnavailableError), (_pulsar.Result.Timeout, OperationTimeoutError)]
    ):
        task = asyncio.ensure_future(native.attempts().run())
        await native.started(index + 1)
        native.answer(index, answer, None)
        with pytest.raises(kind):
            await task


async def test_cancelled_while_an_attempt_is_under_way(log: NativeLog) -> None:
    """Its answer is waited for, and closed."""
    native = Native()
    task = asyncio.ensure_future(native.attempts().run())
    await native.started(1)
    task.cancel()
    await anyio.sleep(0.05)
    assert not task.done()
    native.answer(0, OK, "made")
    with pytest.raises(asyncio.CancelledError):
        await task
    assert native.discarded == ["made"]


async def test_closed_while_an_attempt_is_under_way(log: NativeLog) -> None:
    """The connection's close ends it."""
    native = Native()
    attempts = native.attempts()
    task = asyncio.ensure_future(attempts.run())
    await native.started(1)
    attempts.bridge.close()
    with pytest.raises(ObjectClosedError):
        await task


async def test_a_question_is_asked_again_until_its_time_is_over() -> None:
    """The pauses grow, and none begins that would end too late."""
    asked = 0

    async def ask() -> bool:
        nonlocal asked
        asked += 1
        raise translate(_pulsar.Result.ServiceUnitNotReady, "look")

    with pytest.raises(TransportError, match="moving"):
        await ask_again(Bridge(), ask, 0.0)
    assert asked == 1
    with pytest.raises(TransportError, match="moving"):
        await ask_again(Bridge(), ask, 1.0)
    assert 3 <= asked <= 1 + 4  # after 0, 0.1, 0.3 and 0.7 seconds


async def test_a_fenced_subscription_on_the_broker(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process creates the subscription at the same moment: the consumer opens all the same, soon."""
    monkeypatch.setattr(subscriber, "subscribing", lambda *_: nullcontext())
    monkeypatch.setattr(paths, "creating", lambda *_: nullcontext())
    admin = kit.transport.admin
    assert admin is not None
    for _ in range(20):
        kit.topic = new_topic("fenced")
        async with anyio.create_task_group() as group:
            group.start_soon(admin.create_subscription, kit.topic, "sub", StartPosition.EARLIEST)
            with anyio.fail_after(HANG):
                box = await kit.box()
        await send(await kit.sender(), "x")
        assert texts(await box.take(1)) == ["x"]
        await box.receiver.aclose(HANG)
