"""TextMessage (jms-spec 2.5)."""

from __future__ import annotations

from typing import Any, ClassVar

from jmsaio.errors import MessageFormatError
from jmsaio.model.message import Message


class TextMessage(Message):
    """A message with a text; None and "" are different, and both arrive as they were sent.

    Args:
        text: the text, or None.
    """

    __slots__ = ("_text",)
    KIND: ClassVar[str] = "text"
    _text: str | None

    def __init__(self, text: str | None = None) -> None:
        self._acknowledge = self._head = self._properties = self._source = None
        self._count = 0
        self._read_only_body = self._read_only_properties = False
        if text is not None and not isinstance(text, str):
            raise MessageFormatError(f"a text message holds a str or None, not {type(text).__name__}")
        self._text = text

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
        if value is not None and not isinstance(value, str):
            raise MessageFormatError(f"a text message holds a str or None, not {type(value).__name__}")
        self._text = value

    def get_text(self) -> str | None:
        """The text."""
        return self._text

    def set_text(self, value: str | None) -> None:
        """The same as setting ``text``."""
        self.text = value

    def clear_body(self) -> None:
        """Set the text to None and make it writable."""
        super().clear_body()
        self._text = None

    def _body_copy(self) -> str | None:
        return self._text

    def is_body_assignable_to(self, body_type: type) -> bool:
        """True for str and object, and for any type when the text is None."""
        return self._text is None or body_type in (str, object)
