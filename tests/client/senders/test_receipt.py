"""The receipt of a send."""

from __future__ import annotations

from jmsaio.client.senders.receipt import Receipt
from jmsaio.model.destinations import Queue
from jmsaio.model.wire import WireId


def test_a_receipt_is_a_value() -> None:
    receipt = Receipt("ID:u:1:1", WireId(1, 2), Queue("q"), 5)
    assert receipt == Receipt("ID:u:1:1", WireId(1, 2), Queue("q"), 5)
    assert (receipt.jms_message_id, str(receipt.place), receipt.timestamp) == ("ID:u:1:1", "ID:1:2:-1", 5)
