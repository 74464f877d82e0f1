"""TextMessage: a str or None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from jmsaio.errors import MessageFormatError
from jmsaio.model.messages.message import Message, Property
from jmsaio.model.values import is_kind


class TextMessage(Message):
    """A message with a text. None and "" are different, and each is received as it was sent.

    Args:
        text: the text, or None.
        properties: as for ``Message``.
    """

    __slots__ = ()
    KIND: ClassVar[str] = "text"
    _content: str | None

    def __init__(self, text: str | None = None, *, properties: Mapping[str, Property] | None = None) -> None:
        # The slots of Message, repeated here: this is the hot path of a sender.
        self._session = self._head = self._properties = self._source = self._record = None
        self._count = self._delivery = 0
        self._read_only_body = self._read_only_properties = False
        self._content = text if type(text) is str or text is None else _text(text)
        if properties is not None:
            self._put_properties(properties)

    @property
    def text(self) -> str | None:
        """The text. Setting it on a received message raises MessageNotWriteableError."""
        return self._content

    @text.setter
    def text(self, value: str | None) -> None:
        self._check_body_writable()
        self._content = value if type(value) is str or value is None else _text(value)

    def get_text(self) -> str | None:
        """Return the text."""
        return self._content

    def set_text(self, value: str | None) -> None:
        """Set the text; see ``text``."""
        self.text = value

    def is_body_assignable_to(self, body_type: type) -> bool:
        """Return True for str and its base classes (object, Sequence), and for any type if the text is None."""
        return self._content is None or is_kind(str, body_type)


def _text(value: object) -> str:
    """Convert an instance of a str subclass to a plain str. Raises MessageFormatError for anything but text."""
    if not isinstance(value, str):
        raise MessageFormatError(f"a text message holds a str or None, not {type(value).__name__}")
    return str.__str__(value)
