"""Decides which selectors Starlight's broker plugin can run for a JMS consumer without losing messages.

The plugin can deliver more messages than a selector selects, because the client checks received messages. It must never
hold back a message that is selected by the rules of Jakarta Messaging. The rules here are the known differences of its
engine, converted to forms that are safe for all messages of JMS clients, except for the numbers NaN and -0.0, and a
JMSPriority above 9.
"""

from __future__ import annotations

import math
from typing import Final

from jmsaio.errors import InvalidSelectorError
from jmsaio.model.headers import FIELDS
from jmsaio.selector import like
from jmsaio.selector.nodes import (
    And,
    Arithmetic,
    Between,
    Compare,
    Group,
    In,
    IsNull,
    Like,
    Literal,
    Name,
    Node,
    Not,
    Or,
    Sign,
    bare,
)
from jmsaio.selector.parser import parse
from jmsaio.selector.refusal import Refused
from jmsaio.selector.starlight import like as engine_like
from jmsaio.selector.starlight.compiler import compile_tree

#: Headers with the same value for the plugin as for a JMS client. For others it uses another value, or fails and drops
#: the message.
_SEEN: Final = frozenset(header.name for header in FIELDS if header.alike)


def objection(text: str) -> str | None:
    """Return why the plugin might hold back a message that a selector selects.

    Args:
        text: a selector that is valid in Jakarta Messaging.

    Returns:
        The reason with its column; None if the plugin can run the selector.
    """
    try:
        compile_tree(parse(text, "starlight"), convert=False)
    except (Refused, InvalidSelectorError):
        return "the plugin can't read it"
    try:
        _check(parse(text, "jms"), negated=False)
    except Refused as error:
        return f"column {error.at + 1}: {error.reason}"
    return None


def _check(node: Node, *, negated: bool) -> None:
    """Refuse a condition whose result might differ: TRUE must stay TRUE and, below a NOT, FALSE must stay FALSE."""
    match node:
        case Group(inner=inner):
            _check(inner, negated=negated)
        case And(terms=terms) | Or(terms=terms):
            for term in terms:
                _check(term, negated=negated)
        case Not(operand=operand):
            if not isinstance(operand, Group | Name | Not | Literal):
                raise Refused("the plugin reads NOT as part of the first operand; write NOT (...)", node.at)
            _check(operand, negated=True)
        case Compare(operator=operator, left=left, right=right):
            if negated and operator == "<>":
                raise Refused("below NOT, the plugin takes <> on different types for true", node.at)
            _check_operands(left, right)
        case Between(subject=subject, low=low, high=high):
            _check_operands(subject, low)
            _check_operands(subject, high)
        case Like(subject=subject, pattern=pattern, escape=escape):
            if negated and node.negated:
                raise Refused("below NOT, the plugin takes NOT LIKE on a number for true", node.at)
            _check_name(subject)
            signs = str(pattern.value), None if escape is None else str(escape.value)
            if like.elements(*signs) != engine_like.elements(*signs):
                raise Refused("the plugin reads this pattern in another way", pattern.at)
        case In(subject=subject) | IsNull(subject=subject):
            _check_name(subject)
        case Name():
            _check_name(node)


def _check_operands(left: Node, right: Node) -> None:
    """Check two operands of a comparison: a name, then a literal; a text or Boolean can be first."""
    first, second = bare(left), bare(right)
    if isinstance(second, Literal):
        if isinstance(second.value, float) and second.value == 0 and math.copysign(1, second.value) < 0:
            raise Refused("the plugin distinguishes -0.0 from 0.0", right.at)
        _check_name(first)
    elif isinstance(first, Literal) and isinstance(first.value, bool | str):
        _check_name(second)
    else:
        raise Refused("the plugin compares a byte, short or float on the right differently", right.at)


def _check_name(node: Node) -> None:
    match bare(node):
        case Name(name=name):
            if name.startswith("JMS") and not name.startswith("JMS_") and name not in _SEEN:
                raise Refused(f"the plugin does not see {name} as a client does", node.at)
        case Arithmetic() | Sign():
            raise Refused("the plugin calculates with other types", node.at)
        case inner if not isinstance(inner, Literal):
            raise Refused("the plugin compares conditions differently", node.at)
