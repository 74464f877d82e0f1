"""The public class: a message selector, checked and compiled when it is created.

Grammar and compilers are loaded with the first selector: this takes a tenth of a second, and most processes use none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from jmsaio.errors import IllegalArgumentError
from jmsaio.model.arguments import check_text, shown
from jmsaio.model.messages.message import Message
from jmsaio.model.wire import ReceivedRecord
from jmsaio.selector.refusal import Refused, refusal

if TYPE_CHECKING:
    from jmsaio.selector.generate import OnValues

Dialect = Literal["jms", "starlight"]
Header = Callable[[ReceivedRecord, str], object]
_Functions = tuple[
    Callable[[ReceivedRecord, Header], bool | None], Callable[[Message | Mapping[str, object]], bool | None]
]

#: Prefix of a text of the Starlight dialect whose comparisons convert strings to numbers.
CONVERT: Final = "convert_string_expressions:"
#: Maximum number of compiled selectors cached by their text.
CACHED: Final = 256


class Selector:
    """A condition over headers and properties that selects messages (Jakarta Messaging 3.1, 3.8 Message selection).

    Args:
        text: the selector. "No selector" (None or the empty string) must be handled by the caller.
        dialect: ``jms``, the specification; ``starlight``, with the results of the Java broker plugin, for a text that
            is also used for server-side filtering.

    Raises:
        InvalidSelectorError: the text is not a selector; ``column`` is the position of the error.
        IllegalArgumentError: an unknown dialect.

    Attributes:
        text: as passed.
        dialect: as passed.
        matches_record: function of a received record and of ``header(record, name)``, which returns the values of JMS
            headers and of JMSXDeliveryCount, JMSXGroupID and JMSXGroupSeq. True selects; False and None (UNKNOWN) do
            not. Properties are read from the record as on the wire: a type mark in either spelling counts, and a
            property whose text is not a number of its marked type is UNKNOWN. Only the ``starlight`` dialect raises,
            SelectorRuntimeError.
    """

    __slots__ = ("_matches", "dialect", "matches_record", "text")

    text: str
    dialect: Dialect
    matches_record: Callable[[ReceivedRecord, Header], bool | None]
    _matches: Callable[[Message | Mapping[str, object]], bool | None]

    def __init__(self, text: str, dialect: Dialect = "jms") -> None:
        check_text(text, "text")
        check_text(dialect, "dialect")
        if dialect not in _MAKERS:
            raise IllegalArgumentError(
                f"dialect: unknown selector dialect {shown(dialect)}; there are {', '.join(_MAKERS)}"
            )
        self.text = text
        self.dialect = dialect
        self.matches_record, self._matches = _compiled(text, dialect)

    def matches(self, message: Message | Mapping[str, object]) -> bool | None:
        """Evaluate on a message or on a mapping of names to values.

        Args:
            message: a Message; or a mapping with properties by name and headers by their JMS names (JMSPriority, ...),
                the delivery mode as the word PERSISTENT or NON_PERSISTENT.

        Returns:
            True (selected), False, or None for UNKNOWN (not selected either).

        Raises:
            SelectorRuntimeError: ``starlight`` dialect only, if the Java plugin fails on this message.
        """
        return self._matches(message)

    def __repr__(self) -> str:
        return f"Selector({self.text!r}, dialect={self.dialect!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and (self.text, self.dialect) == (other.text, other.dialect)

    def __hash__(self) -> int:
        return hash((self.text, self.dialect))


@functools.lru_cache(maxsize=CACHED)
def _compiled(text: str, dialect: Dialect) -> _Functions:
    try:
        return _MAKERS[dialect](text)
    except Refused as error:
        raise refusal(error.reason, text, error.at) from None


def _jms(text: str) -> _Functions:
    from jmsaio.selector import check, generate, wire_values
    from jmsaio.selector.parser import parse

    tree = parse(text, "jms")
    check.check(tree)

    @functools.cache
    def on_values() -> OnValues:
        return generate.compile_values(tree)

    def matches(message: Message | Mapping[str, object]) -> bool | None:
        if isinstance(message, Mapping):
            return on_values()(*wire_values.of_mapping(message))
        return on_values()(*wire_values.of_message(message))

    return generate.compile_record(tree), matches


def _starlight(text: str) -> _Functions:
    from jmsaio.selector.parser import parse
    from jmsaio.selector.starlight import compiler, lookup

    convert = text.startswith(CONVERT)
    answer = compiler.compile_tree(parse(text, "starlight", start=len(CONVERT) if convert else 0), convert=convert)

    def on_record(record: ReceivedRecord, header: Header) -> bool | None:
        return answer(lookup.of_record(record, header))

    def matches(message: Message | Mapping[str, object]) -> bool | None:
        return answer(lookup.of_mapping(message) if isinstance(message, Mapping) else lookup.of_message(message))

    return on_record, matches


_MAKERS: Final[dict[str, Callable[[str], _Functions]]] = {"jms": _jms, "starlight": _starlight}
