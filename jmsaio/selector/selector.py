"""The public class: a message selector, checked and compiled when it is created.

Grammar and compilers are loaded with the first selector: this takes a tenth of a second, and most processes use none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from jmsaio.model.arguments import check_text
from jmsaio.model.messages.message import Message
from jmsaio.model.wire import ReceivedRecord
from jmsaio.selector.evaluation import Values

if TYPE_CHECKING:
    from jmsaio.selector.generate import Matches

#: Maximum number of compiled selectors cached by their text.
CACHED: Final = 256


class Selector:
    """A condition over headers and properties that selects messages (Jakarta Messaging 3.1, 3.8 Message selection).

    Args:
        text: the selector. "No selector" (None or the empty string) must be handled by the caller.

    Raises:
        InvalidSelectorError: the text is not a selector; ``column`` is the position of the error.

    Attributes:
        text: as passed.
        matches_record: function of a received record and of ``header(record, name)``, which returns the values of JMS
            headers and of JMSXDeliveryCount, JMSXGroupID and JMSXGroupSeq. True selects; False and None (UNKNOWN) do
            not. Properties are read from the record as on the wire: a type mark in either spelling counts, and a
            property whose text is not a number of its marked type is UNKNOWN.
    """

    __slots__ = ("matches_record", "text")

    text: str
    matches_record: Callable[[ReceivedRecord, Callable[[ReceivedRecord, str], object]], bool | None]

    def __init__(self, text: str) -> None:
        check_text(text, "text")
        self.text = text
        self.matches_record = _compiled(text)

    def matches(self, message: Message | Mapping[str, object]) -> bool | None:
        """Evaluate on a message or on a mapping of names to values.

        Args:
            message: a Message; or a mapping with properties by name and headers by their JMS names (JMSPriority, ...),
                the delivery mode as the word PERSISTENT or NON_PERSISTENT.

        Returns:
            True (selected), False, or None for UNKNOWN (not selected either).
        """
        values: Any = Values(message)
        return self.matches_record(values, Values.header)  # type: ignore[arg-type]  # the record is ``values``

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


@functools.lru_cache(maxsize=CACHED)
def _compiled(text: str) -> Matches:
    from jmsaio.selector.generate import compile_selector
    from jmsaio.selector.nodes import Refused, refusal
    from jmsaio.selector.parser import parse

    try:
        return compile_selector(parse(text))
    except Refused as error:
        raise refusal(error.reason, text, error.at) from None
