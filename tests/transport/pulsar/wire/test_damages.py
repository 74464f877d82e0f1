"""A damaged entry harms no other, and nothing is lost without a report."""

from __future__ import annotations

from typing import Any

import pytest

from jmsaio.errors import TransportError
from jmsaio.protocol.commands import Command
from jmsaio.protocol.metadata import Metadata
from jmsaio.transport.base import LinkChange, SubscriptionType
from jmsaio.transport.pulsar.wire import damages as module
from jmsaio.transport.pulsar.wire.transport import WireTransport
from tests.kit.records import texts
from tests.transport.pulsar.wire.peer import Peer
from tests.transport.pulsar.wire.test_consumer import subscribe


async def test_a_damaged_entry_is_requested_again_and_arrives_unmarked(
    peer: Peer, transport: WireTransport, caplog: pytest.LogCaptureFixture
) -> None:
    """Damage in transit does not repeat itself, and harms no other entry."""
    box = await subscribe(transport, SubscriptionType.EXCLUSIVE)
    peer.deliver(0, "damaged", "with it", damage=True)
    peer.deliver(1, "whole")
    await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)
    assert "ID:1:0" in caplog.text and "checksum" in caplog.text
    assert peer.all(Command.ACK) == []
    peer.deliver(0, "damaged", "with it", count=1)
    peer.deliver(1, "whole", count=1)
    await transport.ping(5)
    records = await box.take(3)
    assert texts(records) == ["damaged", "with it", "whole"]
    assert [one.redelivery_count for one in records] == [0, 0, 0]


async def test_an_entry_that_stays_damaged_is_reported_once(
    peer: Peer, transport: WireTransport, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AGAIN", (0.0, 0.0))
    reports: list[LinkChange] = []
    transport.link_listeners.add(reports.append)
    box = await subscribe(transport, receiver_queue_size=1)
    for times in range(1, 6):
        peer.deliver(0, "damaged", damage=True)
        if times < 3:
            await peer.seen(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES, times)
    peer.deliver(1, "whole")
    assert texts(await box.take(1)) == ["whole"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert len(reports) == 1
    assert isinstance(reports[0].error, TransportError) and "stays unacknowledged" in reports[0].text
    assert sum(fields["message_permits"] for fields in await peer.seen(Command.FLOW, 7)) == 7, "it still receives"


@pytest.mark.parametrize("metadata", [{"compression": 9}, {"num_messages_in_batch": 2}])
async def test_an_entry_that_can_t_be_read_as_it_was_sent_is_not_requested_again(
    peer: Peer, transport: WireTransport, metadata: dict[str, Any]
) -> None:
    reports: list[LinkChange] = []
    transport.link_listeners.add(reports.append)
    box = await subscribe(transport)
    peer.deliver_entry(0, Metadata("p", 0, 1, **metadata), b"x")
    peer.deliver(1, "whole")
    assert texts(await box.take(1)) == ["whole"]
    assert len(reports) == 1 and "(subscription s, ID:1:0) can't be read" in reports[0].text
    assert not peer.all(Command.REDELIVER_UNACKNOWLEDGED_MESSAGES)
