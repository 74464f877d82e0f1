"""Bytes and stream messages are write-only when new, read-only after reset, and give each value back in its type."""

from __future__ import annotations

import pytest

from jmsaio.errors import (
    MessageEOFError,
    MessageFormatError,
    MessageNotReadableError,
    MessageNotWriteableError,
)
from jmsaio.model.messages.sequential import BytesMessage, SequentialMessage, StreamMessage

CLASSES = [BytesMessage, StreamMessage]
VALUES = {
    "boolean": True, "byte": -5, "short": -300, "char": "é", "int": 1 << 30, "long": -(1 << 40), "float": 1.5,
    "double": 0.1,
}  # fmt: skip


@pytest.mark.parametrize("kind", CLASSES)
def test_each_type_is_read_as_it_was_written(kind: type[SequentialMessage]) -> None:
    message = kind()  # type: ignore[call-arg]  # a class of messages, which needs no arguments
    for name, value in VALUES.items():
        getattr(message, f"write_{name}")(value)
    message.reset()
    found = {name: getattr(message, f"read_{name}")() for name in VALUES}
    assert found == VALUES
    assert [type(each) for each in found.values()] == [type(each) for each in VALUES.values()]
    with pytest.raises(MessageEOFError):
        message.read_int()


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("name", VALUES)
def test_a_new_message_is_write_only_and_one_that_was_reset_is_read_only(
    kind: type[SequentialMessage], name: str
) -> None:
    message = kind()  # type: ignore[call-arg]  # as above
    with pytest.raises(MessageNotReadableError):
        getattr(message, f"read_{name}")()
    message.reset()
    with pytest.raises(MessageNotWriteableError):
        getattr(message, f"write_{name}")(VALUES[name])
    message.clear_body()
    getattr(message, f"write_{name}")(VALUES[name])


@pytest.mark.parametrize("kind", CLASSES)
def test_values_out_of_range_or_of_another_type_are_refused(kind: type[SequentialMessage]) -> None:
    message = kind()  # type: ignore[call-arg]  # as above
    for name, value in (("byte", 128), ("short", 1 << 15), ("int", 1 << 31), ("boolean", 1), ("char", "ab")):
        with pytest.raises(MessageFormatError):
            getattr(message, f"write_{name}")(value)
    assert not message._body()
