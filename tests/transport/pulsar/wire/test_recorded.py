from __future__ import annotations

import pytest

from jmsaio.protocol.commands import Command
from jmsaio.protocol.framing import entry_of
from jmsaio.protocol.metadata import decode_metadata
from tests.protocol.all_commands import encode_command
from tests.support.broker import TestBroker
from tests.transport.pulsar.wire.recorded import cut, fields_of, frames, record


def test_what_a_broker_said_is_read_and_written_alike() -> None:
    for data in frames():
        frame = cut(data)
        assert fields_of(encode_command(Command(frame.kind), **fields_of(data))) == fields_of(data)
        if frame.kind == Command.MESSAGE:
            parts = entry_of(frame)
            assert decode_metadata(parts.data, parts.metadata, parts.payload).producer_name


@pytest.mark.broker
@pytest.mark.real_time
@pytest.mark.slow
async def test_a_broker_says_the_same_today(pulsar_broker: TestBroker) -> None:
    """It can be recorded anew, with the same kinds of commands."""
    assert {cut(data).kind for data in await record(pulsar_broker.url)} >= {cut(data).kind for data in frames()}
