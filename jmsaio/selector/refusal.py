"""Creates the error of an invalid selector: the reason, the column, and an excerpt with the position marked."""

from __future__ import annotations

from jmsaio.errors import InvalidSelectorError

#: Number of characters shown on each side of the position.
_SIDE = 30


class Refused(Exception):
    """A part of a selector is invalid at its position; converted to InvalidSelectorError by callers that have the text.

    Attributes:
        reason: the problem, and the expected text.
        at: 0-based offset in the text.
    """

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


def refusal(reason: str, text: str, at: int) -> InvalidSelectorError:
    """Return the error for ``text``, with a second and third line that show the position.

    Args:
        reason: the problem, and the expected text.
        at: 0-based offset; the column of the error is one more, counted from the start of the text even if the text has
            several lines.
    """
    start, end = max(0, at - _SIDE), at + _SIDE
    head, tail = "..." if start > 0 else "", "..." if end < len(text) else ""
    excerpt = "".join(character if character.isprintable() else " " for character in text[start:end])
    pointer = " " * (len(head) + at - start) + "^"
    message = f"selector, column {at + 1}: {reason}\n  {head}{excerpt}{tail}\n  {pointer}"
    return InvalidSelectorError(message, text=text, column=at + 1)
