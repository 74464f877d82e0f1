"""TextMessage: a str or None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from jmsaio.errors import MessageFormatError
from jmsaio.model.messages.message import Message, MessageSource, Property
from jmsaio.model.typed import is_kind


class TextMessage(Message):
    """A message with a text. None and "" are different, and each is received as it was sent.

    Args:
        text: the text, or None.
        properties: as for ``Message``.
    """

    __slots__ = ("_text",)
    KIND: ClassVar[str] = "text"
    _text: str | None

    def __init__(self, text: str | None = None, *, properties: Mapping[str, Property] | None = None) -> None:
        # The slots of Message, repeated here: this is the hot path of a sender.
        self._acknowledge = self._head = self._properties = self._source = self._record = None
        self._count = self._delivery = 0
        self._read_only_body = self._read_only_properties = False
        self._text = text if type(text) is str or text is None else _text(text)
        if properties is not None:
            self._put_properties(properties)

    @classmethod
    def _received(cls, source: MessageSource, record: Any, body: Any) -> Self:
        # As Message._received, without its method call for the body: this is the hot path of a receiver.
        message = cls.__new__(cls)
        message._acknowledge = message._head = message._properties = None
        message._source = source
        message._record = record
        message._count = 1
        message._delivery = 0
        message._read_only_body = message._read_only_properties = True
        message._text = body
        return message

    def _set_received_body(self, body: Any) -> None:
        self._text = body

    def _body(self) -> str | None:
        return self._text

    @property
    def text(self) -> str | None:
        """The text. Setting it on a received message raises MessageNotWriteableError."""
        return self._text

    @text.setter
    def text(self, value: str | None) -> None:
        self._check_body_writable()
        self._text = value if type(value) is str or value is None else _text(value)

    def get_text(self) -> str | None:
        """Return the text."""
        return self._text

    def set_text(self, value: str | None) -> None:
        """Set the text; see ``text``."""
        self.text = value

    def clear_body(self) -> None:
        """Set the text to None and make it writable."""
        super().clear_body()
        self._text = None

    def _body_copy(self) -> str | None:
        return self._text

    def is_body_assignable_to(self, body_type: type) -> bool:
        """Return True for str and its base classes (object, Sequence), and for any type if the text is None."""
        return self._text is None or is_kind(str, body_type)


def _text(value: object) -> str:
    """Convert an instance of a str subclass to a plain str. Raises MessageFormatError for anything but text."""
    if not isinstance(value, str):
        raise MessageFormatError(f"a text message holds a str or None, not {type(value).__name__}")
    return str.__str__(value)
