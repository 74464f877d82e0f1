"""A command that runs while its token expires, or its right is revoked, ends with the cause; nothing is lost."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import uuid
from asyncio.subprocess import PIPE
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

import jmsaio
from tests.support.secure import SecureBroker

#: Seconds that the token is good for, in which the command starts, and that anything takes at most.
LIFETIME, LONG = 25.0, 90.0
WORDS = {"expired": r"the token expired at 20.* UTC; write a valid one into ", "revoked": "no right to do this"}


class Command:
    """A command on a queue in a namespace of its own, with a token in a file."""

    def __init__(self, broker: SecureBroker, how: str, file: Path) -> None:
        self._broker, self._how = broker, how
        self._file = file
        self._namespace = broker.namespace(uuid.uuid4().hex[:12])
        self.queue = f"persistent://{self._namespace}/refused"

    async def start(self, name: str, *arguments: str) -> asyncio.subprocess.Process:
        self._file.write_text(self._broker.token(lifetime=LIFETIME if self._how == "expired" else None))
        options = self._broker.options(params=f"file://{self._file}").items()
        given = [part for name, value in options for part in ("-o", f"{name}={value}")]
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "jmsaio", name, self.queue, *arguments, *given, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )

    async def refuse(self) -> None:
        if self._how == "revoked":
            await anyio.to_thread.run_sync(self._broker.allow, self._namespace)
        else:
            await asyncio.sleep(LIFETIME)

    async def refused(self, process: asyncio.subprocess.Process) -> bytes:
        """Wait for the end of the command; what it printed."""
        output, errors = await asyncio.wait_for(process.communicate(), LONG)
        assert process.returncode == 1, errors.decode()
        assert re.search(WORDS[self._how], errors.decode()), errors.decode()
        if self._how == "revoked":
            await anyio.to_thread.run_sync(self._broker.allow, self._namespace, "produce", "consume")
        return output

    async def send(self, text: str) -> None:
        async with jmsaio.connect(self._broker.options()) as connection, connection.create_session() as session:
            await (await session.create_producer(session.create_queue(self.queue))).send(text)

    async def wait_until_acknowledged(self) -> None:
        """Wait until the broker has the acknowledgement of everything in the queue."""
        with anyio.fail_after(LONG):
            while await anyio.to_thread.run_sync(self._broker.backlog, self.queue):
                await asyncio.sleep(0.1)

    async def receive_all(self) -> list[str]:
        async with jmsaio.connect(self._broker.options()) as connection, connection.create_session() as session:
            consumer = await session.create_consumer(session.create_queue(self.queue))
            found: list[str] = []
            while (message := await consumer.receive(timeout=3)) is not None:
                found.append(str(message.get_body(str)))
            return found


@pytest.fixture(params=WORDS)
def command(request: pytest.FixtureRequest, secure_broker: SecureBroker, tmp_path: Path) -> Command:
    return Command(secure_broker, request.param, tmp_path / "token")


async def test_a_command_that_receives_ends(command: Command) -> None:
    await command.send("first")
    process = await command.start("receive", "--follow", "--json")
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), LONG)
    assert json.loads(line)["body"] == "first"
    await command.wait_until_acknowledged()  # what is on its way when the right ends comes again
    await command.refuse()
    assert await command.refused(process) == b""
    await command.send("second")
    assert await command.receive_all() == ["second"]


async def test_a_command_that_sends_ends(command: Command) -> None:
    process = await command.start("send", "--file", "-", "--lines")
    assert process.stdin is not None
    process.stdin.write(b"first\n")
    with anyio.fail_after(LONG):
        while await command.receive_all() != ["first"]:
            pass
    await command.refuse()
    ended = asyncio.create_task(process.wait())
    while not ended.done():  # the broker takes a moment to close the producer
        process.stdin.write(b"another\n")
        await asyncio.wait({ended}, timeout=0.5)
    receipts = (await command.refused(process)).splitlines()
    received = ["first", *await command.receive_all()]
    assert len(receipts) <= len(received) <= len(receipts) + 1  # one may be in doubt
