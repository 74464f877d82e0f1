"""What the reader of a pipe has taken."""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jmsaio.cli.pipe import taken


@contextmanager
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Both ends of a pipe that is standard output."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as output, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", output)
        yield reader, writer


async def test_it_waits_until_all_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a byte that lies in the pipe nor a part of what was written counts as taken."""
    with pipe(monkeypatch) as (reader, writer):
        await taken()
        os.write(writer, b"abc")
        waiting = asyncio.create_task(taken())
        for _ in range(3):
            await asyncio.sleep(0.05)
            assert not waiting.done()
            assert len(os.read(reader, 1)) == 1
        await asyncio.wait_for(waiting, 30)
        os.close(reader)


async def test_a_reader_that_ends_has_taken_what_it_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is a broken pipe, also while it is waited for."""
    with pipe(monkeypatch) as (reader, writer):
        os.write(writer, b"abc")
        os.read(reader, 3)
        await asyncio.wait_for(taken(), 30)
        os.write(writer, b"d")
        waiting = asyncio.create_task(taken())
        await asyncio.sleep(0.1)
        os.close(reader)
        with pytest.raises(BrokenPipeError):
            await asyncio.wait_for(waiting, 30)


async def test_a_file_needs_no_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No one has to read a file, and a stream without a file has no reader."""
    descriptor = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    with os.fdopen(descriptor, "w") as output, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", output)
        output.write("abc")
        await taken()
        patched.setattr(sys, "stdout", None)
        await taken()
