"""Message selectors (checklist 1)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import jmsaio
from tests.conformance.kit import row

QUEUE = "core/selectorQueue/MsgSelectorQueueTestsIT"


@pytest.mark.parametrize(
    ("selector", "matching"),
    [
        row("JMSType = 'literal'", {"jms_type": "literal"}, key=f"{QUEUE}.selectorTest01"),
    ],
)
async def test_a_matching_message_arrives(
    session: jmsaio.Session, name: Callable[[str], str], selector: str, matching: dict[str, str]
) -> None:
    queue = session.create_queue(name("selector"))
    consumer = await session.create_consumer(queue, selector=selector)
    producer = await session.create_producer(queue)
    message = session.create_text_message("found")
    for header, value in matching.items():
        setattr(message, header, value)
    await producer.send(message)
    found = await consumer.receive(timeout=20)
    assert found is not None and found.get_body(str) == "found"
