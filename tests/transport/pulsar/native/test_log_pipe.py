"""``Pipe``: what is written arrives; what lies under its numbers later is left alone."""

from __future__ import annotations

import os
import socket

import pytest

from jmsaio.transport.pulsar.native.log_pipe import Pipe


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
