"""The command ``jmsaio top``: what it needs, its exit codes, and that it leaves the terminal as it was."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import attrs
import pytest

import jmsaio
from jmsaio.cli.app import main
from tests.support.secure import SecureBroker

#: What ends textual's screen and shows the shell's again.
RESTORED = b"\x1b[?1049l"


@attrs.define
class Terminal:
    """A command on a terminal of its own."""

    process: asyncio.subprocess.Process
    end: int
    output: bytes = b""

    async def until(self, words: bytes) -> None:
        try:
            async with asyncio.timeout(60):
                while words not in self.output:
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(self.output[-4000:].decode(errors="replace")) from None

    def press(self, keys: bytes) -> None:
        os.write(self.end, keys)

    def _read(self) -> None:
        try:
            self.output += os.read(self.end, 65536)
        except OSError:  # the command has ended
            asyncio.get_running_loop().remove_reader(self.end)


@asynccontextmanager
async def terminal(*arguments: str) -> AsyncIterator[Terminal]:
    ours, its = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "jmsaio", "top", *arguments, stdin=its, stdout=its, stderr=its,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "160", "LINES": "40"},
    )  # fmt: skip
    os.close(its)
    opened = Terminal(process, ours)
    asyncio.get_running_loop().add_reader(ours, opened._read)
    try:
        yield opened
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        asyncio.get_running_loop().remove_reader(ours)
        os.close(ours)


async def test_a_queue_is_looked_at_on_a_terminal(small_url: str, name: Callable[[str], str]) -> None:
    queue = name("seen")
    async with jmsaio.connect(small_url) as connection, connection.create_session() as session:
        await (await session.create_producer(session.create_queue(queue))).send("a body to look at")
    async with terminal(small_url) as top:
        await top.until(b"batches")
        top.press(b"/" + queue.encode() + b"\rb")  # at once, as they are pasted
        await top.until(b"a body to look at")
        top.press(b"q")
        assert await asyncio.wait_for(top.process.wait(), 30) == 0
        await top.until(RESTORED)


@pytest.mark.parametrize("interrupt", ["key", "signal"])
async def test_an_interrupt_restores_the_terminal(small_url: str, interrupt: str) -> None:
    async with terminal("-u", small_url, "--every", "0.2") as top:
        await top.until(b"batches")
        if interrupt == "key":
            top.press(b"\x03")
        else:
            top.process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(top.process.wait(), 30) == 130
        await top.until(RESTORED)


async def test_a_wrong_url_ends_the_command_before_the_screen_opens() -> None:
    async with terminal("pulsar://127.0.0.1:1") as top:
        assert await asyncio.wait_for(top.process.wait(), 60) == 1
        await top.until(b"jmsaio broker start")
        assert RESTORED not in top.output


async def test_refused_credentials_are_an_error_without_the_secret(secure_broker: SecureBroker) -> None:
    token = f"wrong-{uuid.uuid4()}"
    options = secure_broker.options(params=f"token:{token}").items()
    async with terminal(*(part for name, value in options for part in ("-o", f"{name}={value}"))) as top:
        assert await asyncio.wait_for(top.process.wait(), 60) == 1
        await top.until(b"jmsaio guide security")
        assert token.encode() not in top.output


def test_without_a_terminal_another_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "pulsar://127.0.0.1:1"]) == 2
    assert "jmsaio queues --watch" in capsys.readouterr().err


def test_without_textual_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['textual'] = None; from jmsaio.cli import main; sys.exit(main(['top', '-u', 'pulsar://h']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'jmsaio[top]'" in done.stderr
    code = "import sys; from jmsaio.cli import main; main(['--help']); sys.exit('textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0
