"""Reading pulsar-client's log back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jmsaio.transport.pulsar import native_log as module
from jmsaio.transport.pulsar.native_log import ENOUGH, NativeLog, Refusal, native_log

TOPIC = "persistent://public/default/t"
FENCED = (
    "2026-11-22 02:10:48.791 WARN  [11] ClientConnection:1731 | [127.0.0.1:1 -> 127.0.0.1:2] Received error response"
    " from server: Retryable (Subscription is fenced) -- req_id: 7\n"
)
REFUSED = (
    f"2026-11-22 02:10:48.791 WARN  [11] ConsumerImpl:381 | [{TOPIC}, jms-queue, 3] Temporary error in creating"
    " consumer: Retryable\n"
)


def write(log: NativeLog, text: str) -> None:
    """As pulsar-client writes: at the end, whatever is there."""
    with open(log.path, "a") as file:
        file.write(text)


def test_a_refusal_is_found_with_the_brokers_reason() -> None:
    """Those of other topics and subscriptions, and older ones, are not taken for it."""
    log = NativeLog(None)
    write(log, FENCED + REFUSED)
    assert log.refusal(0, TOPIC, "jms-queue") == Refusal("Retryable", "Subscription is fenced")
    assert log.refusal(0, None, "jms-queue") == log.refusal(0, TOPIC, None) == log.refusal(0, None, None)
    assert log.refusal(0, f"{TOPIC}2", "jms-queue") is None
    assert log.refusal(0, TOPIC, "other") is None
    assert log.refusal(log.end(), TOPIC, "jms-queue") is None


def test_the_reason_is_that_of_the_same_thread() -> None:
    """What another connection was told is no reason for this one."""
    log = NativeLog(None)
    write(log, FENCED.replace("[11]", "[12]") + REFUSED)
    found = log.refusal(0, TOPIC, "jms-queue")
    assert found == Refusal("Retryable", "")
    assert str(found) == "[Retryable]"
    assert str(Refusal("Retryable", "Subscription is fenced")) == "Subscription is fenced [Retryable]"


def test_the_log_in_memory_is_bounded() -> None:
    """It is emptied when it has grown, and what is written afterwards is found from an older position, too."""
    log = NativeLog(None)
    write(log, "x" * 100)
    log.trim()
    assert log.end() == 100
    write(log, "x" * ENOUGH)
    position = log.end()
    log.trim()
    assert log.end() == 0
    write(log, FENCED + REFUSED)
    assert log.refusal(position, TOPIC, "jms-queue") is not None


def test_a_file_that_the_environment_names_is_kept(tmp_path: Path) -> None:
    """It is read, and never emptied."""
    path = tmp_path / "pulsar.log"
    log = NativeLog(str(path))
    assert log.end() == 0 and log.refusal(0, TOPIC, "jms-queue") is None
    write(log, "x" * ENOUGH + "\n")
    position = log.end()
    write(log, FENCED + REFUSED)
    log.trim()
    assert path.stat().st_size > ENOUGH
    assert log.refusal(position, TOPIC, "jms-queue") is not None


def test_another_file_under_its_number_is_left_alone(tmp_path: Path) -> None:
    """A program that closed all descriptors, as daemons do, may have opened its own file there."""
    log = NativeLog(None)
    if not log.path.startswith("/proc/"):
        pytest.skip("no files in memory here")
    write(log, FENCED + REFUSED)
    path = tmp_path / "precious"
    path.write_text("x" * ENOUGH)
    number = int(log.path.rpartition("/")[2])
    other = os.open(path, os.O_RDWR)
    os.dup2(other, number)
    try:
        log.trim()
        assert path.stat().st_size == ENOUGH
        assert log.refusal(0, TOPIC, "jms-queue") is None
    finally:
        os.close(other)
        os.close(number)


def test_without_files_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in the folder for temporary ones serves, and is removed at the end."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    log = NativeLog(None)
    write(log, FENCED + REFUSED)
    assert log.refusal(0, TOPIC, "jms-queue") is not None
    module._remove(log.path, os.getpid() + 1)
    assert Path(log.path).exists()
    module._remove(log.path, os.getpid())
    assert not Path(log.path).exists()
    assert log.end() == 0
    log.trim()


def test_one_log_a_process() -> None:
    """pulsar-client takes the first one for all its clients."""
    assert native_log() is native_log()
