"""Headers as a value."""

from __future__ import annotations

import pytest

from jmsaio.model.messages.headers import Headers


def test_headers_start_with_the_defaults_of_jms() -> None:
    head = Headers()
    assert (head.delivery_mode, head.priority, head.timestamp, head.expiration, head.delivery_time) == (2, 4, 0, 0, 0)
    assert head.redelivered is False
    assert {head.destination, head.message_id, head.correlation_id, head.reply_to, head.type} == {None}


def test_no_other_fields() -> None:
    with pytest.raises(AttributeError):
        Headers().prioirty = 5  # type: ignore[attr-defined]  # what is tested
