"""How a selector is refused: one error with the reason, the column, and the place marked in an excerpt."""

from __future__ import annotations

from jmsaio.errors import InvalidSelectorError

#: Characters of the selector shown on each side of the place.
_SIDE = 30


class Refused(Exception):
    """A part of a selector can't stand where it stands; turned into InvalidSelectorError where the text is known.

    Attributes:
        reason: what is wrong and what is expected instead.
        at: 0-based offset in the text.
    """

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


def refusal(reason: str, text: str, at: int) -> InvalidSelectorError:
    """The error for ``text``, with a second and third line that show the place.

    Args:
        reason: what is wrong and what is expected instead.
        text: the selector.
        at: 0-based offset; the column of the error is one more, counted from the start of the text also where the
            text has several lines.
    """
    start, end = max(0, at - _SIDE), at + _SIDE
    head, tail = "..." if start > 0 else "", "..." if end < len(text) else ""
    excerpt = "".join(character if character.isprintable() else " " for character in text[start:end])
    pointer = " " * (len(head) + at - start) + "^"
    message = f"selector, column {at + 1}: {reason}\n  {head}{excerpt}{tail}\n  {pointer}"
    return InvalidSelectorError(message, text=text, column=at + 1)
