"""Decides from the syntax tree whether Starlight's broker plugin selects the same messages as Jakarta Messaging.

The plugin has ActiveMQ's selector language and engine. Its known differences are converted to rules that are safe for
all messages of JMS clients, except for the numbers NaN and -0.0, and a JMSPriority above 9. In doubt it is a
difference.
"""

from __future__ import annotations

import functools
import math
from typing import Final

import attrs

from jmsaio.errors import InvalidSelectorError
from jmsaio.model.headers import FIELDS
from jmsaio.selector import generate, nodes
from jmsaio.selector.nodes import Node, Refused, refusal
from jmsaio.selector.parser import parse
from jmsaio.selector.selector import CACHED

#: Prefix of a text whose comparisons convert strings to numbers.
CONVERT: Final = "convert_string_expressions:"
#: Headers with the same value for the plugin as for a JMS client. For others it uses another value, or fails and drops
#: the message.
_SEEN: Final = frozenset(header.name for header in FIELDS if header.alike)
#: The plugin's functions: least and most arguments.
_FUNCTIONS: Final[dict[str, tuple[int, int]]] = {
    "REGEX": (2, 2), "INLIST": (2, 2), "MAKELIST": (1, 1_000_000), "SPLIT": (2, 3), "REPLACE": (3, 3),
}  # fmt: skip
#: Those whose result is a condition.
_CONDITIONS: Final = frozenset({"REGEX", "INLIST"})


@attrs.frozen
class PluginSelector:
    """A selector that an operator has set on a subscription, for the plugin.

    ``matches_record`` is as of `Selector`, with the plugin's results; None if the rules of JMS can't give them, and
    then ``difference`` says why, with the column.
    """

    text: str
    matches_record: generate.Matches | None
    difference: str | None


@functools.lru_cache(maxsize=CACHED)
def plugin_selector(text: str) -> PluginSelector:
    """Return a subscription's selector. Raises InvalidSelectorError if the plugin can't read it, so delivers none."""
    _parse_as_plugin(text)
    try:
        tree = parse(text)
        generate.compile_selector(tree)
        _compare(tree, exact=True)
    except Refused as error:
        return PluginSelector(text, None, f"column {error.at + 1}: {error.reason}")
    except InvalidSelectorError as error:
        return PluginSelector(text, None, error.reason.partition("\n")[0])
    return PluginSelector(text, generate.compile_selector(_in_jms(tree)), None)


def objection(text: str) -> str | None:
    """Return why the plugin might hold back a message that a consumer's valid selector selects, with the column.

    None if it can't. It can deliver more than the selector selects, because the client checks received messages.
    """
    try:
        _parse_as_plugin(text)
        _compare(parse(text), exact=False)
    except InvalidSelectorError:
        return "the plugin can't read it"
    except Refused as error:
        return f"column {error.at + 1}: {error.reason}"
    return None


# Where the plugin decides otherwise


def _compare(node: Node, *, exact: bool, negated: bool = False) -> None:
    """Refuse a condition whose result might differ: TRUE must stay TRUE and, below a NOT, FALSE must stay FALSE.

    ``exact``: the plugin's result must also equal that of `_in_jms`. ``negated``: the condition is below a NOT.
    """
    match node:
        case nodes.Parentheses(inner=inner):
            _compare(inner, exact=exact, negated=negated)
        case nodes.And(terms=terms) | nodes.Or(terms=terms):
            for term in terms:
                _compare(term, exact=exact, negated=negated)
        case nodes.Not(operand=operand):
            if not isinstance(operand, nodes.Parentheses | nodes.Name | nodes.Not | nodes.Literal):
                raise Refused("the plugin reads NOT as part of the first operand; write NOT (...)", node.at)
            _compare(operand, exact=exact, negated=True)
        case nodes.Compare(operator=operator, left=left, right=right):
            if negated and operator == "<>" and not exact:
                raise Refused("below NOT, the plugin takes <> on different types for true", node.at)
            _compare_operands(left, right, exact)
        case nodes.Between(subject=subject, low=low, high=high):
            _compare_operands(subject, low, exact)
            _compare_operands(subject, high, exact)
        case nodes.Like(subject=subject, pattern=pattern, escape=escape):
            if negated and node.negated and not exact:
                raise Refused("below NOT, the plugin takes NOT LIKE on a number for true", node.at)
            _compare_name(subject)
            sign = "\x10" if escape is None else str(escape.value)
            if not "\x10" <= sign <= "\xff" and sign in str(pattern.value):  # it expects two hexadecimal digits
                raise Refused("the plugin reads this pattern in another way", pattern.at)
        case nodes.In(subject=subject) | nodes.IsNull(subject=subject):
            _compare_name(subject)
        case nodes.Name():
            _compare_name(node)


def _compare_operands(left: Node, right: Node, exact: bool) -> None:
    """Check two operands of a comparison: a name, then a literal; a text or Boolean can be first."""
    first, second = nodes.bare(left), nodes.bare(right)
    if isinstance(second, nodes.Literal):
        if isinstance(second.value, float) and second.value == 0 and math.copysign(1, second.value) < 0:
            raise Refused("the plugin distinguishes -0.0 from 0.0", right.at)
        _compare_name(first)
    elif isinstance(first, nodes.Literal) and isinstance(first.value, bool | str):
        if exact:
            raise Refused("to the plugin, a name on the right that is missing is unequal", right.at)
        _compare_name(second)
    else:
        raise Refused("the plugin compares a byte, short or float on the right differently", right.at)


def _compare_name(node: Node) -> None:
    match nodes.bare(node):
        case nodes.Name(name=name):
            if name.startswith("JMS") and not name.startswith("JMS_") and name not in _SEEN:
                raise Refused(f"the plugin does not see {name} as a client does", node.at)
        case nodes.Arithmetic() | nodes.Sign():
            raise Refused("the plugin calculates with other types", node.at)
        case inner if not isinstance(inner, nodes.Literal):
            raise Refused("the plugin compares conditions differently", node.at)


def _in_jms(node: Node) -> Node:
    """Return a condition for JMS with the plugin's results: to the plugin, a value of another type is unequal."""
    match node:
        case nodes.Parentheses(inner=inner):
            return attrs.evolve(node, inner=_in_jms(inner))
        case nodes.Not(operand=operand):
            return attrs.evolve(node, operand=_in_jms(operand))
        case nodes.And(terms=terms) | nodes.Or(terms=terms):
            return attrs.evolve(node, terms=tuple(map(_in_jms, terms)))
        case nodes.Compare(operator="<>"):
            return nodes.Not(attrs.evolve(node, operator="="), at=node.at)
        case nodes.Like(negated=True):
            return nodes.Not(attrs.evolve(node, negated=False), at=node.at)
    return node


# What the plugin can read


def _parse_as_plugin(text: str) -> None:
    """Parse a text as the plugin does, except for regular expressions; raises InvalidSelectorError if it can't."""
    tree = parse(text, "starlight", start=len(CONVERT) if text.startswith(CONVERT) else 0)
    try:
        _check_condition(tree)
    except Refused as error:
        raise refusal(error.reason, text, error.at) from None


def _check_condition(node: Node) -> None:
    node = nodes.plain(node)
    match node:
        case nodes.Not() | nodes.And() | nodes.Or():
            for term in nodes.children(node):
                _check_condition(term)
        case nodes.Name():
            return
        case _:
            _check_value(node)
            if not _is_condition(node):
                raise Refused("this is not a condition", node.at)


def _check_value(node: Node) -> None:
    """Refuse what the Java parser does not accept as an operand."""
    node = nodes.plain(node)
    match node:
        case nodes.Not() | nodes.And() | nodes.Or():
            _check_condition(node)
            return
        case nodes.Compare(operator="=" | "<>", left=left, right=right):
            _check_equality(nodes.plain(left), nodes.plain(right))
        case nodes.Compare() | nodes.Between():
            for operand in map(nodes.plain, nodes.children(node)):
                number = isinstance(operand, nodes.Literal) and type(operand.value) not in (bool, str, type(None))
                if _is_condition(operand) or (isinstance(operand, nodes.Literal) and not number):
                    raise Refused("only numbers and names can be ordered", operand.at)
        case nodes.In(subject=subject) if not isinstance(nodes.plain(subject), nodes.Name):
            raise Refused("the left side of IN must be a name", subject.at)
        case nodes.Like(escape=nodes.Literal(value=str(escape), at=at)) if ord(escape) > 0xFFFF:
            raise Refused("ESCAPE needs a string of exactly one character", at)
        case nodes.Call(function=function, arguments=arguments):
            least, most = _FUNCTIONS.get(function, (1, 0))
            if not least <= len(arguments) <= most:
                raise Refused(f"no function {function} of {len(arguments)} arguments", node.at)
    for child in nodes.children(node):
        _check_value(child)


def _check_equality(left: Node, right: Node) -> None:
    for side in (left, right):
        if isinstance(side, nodes.Literal) and side.value is None:
            raise Refused("NULL can't be compared; write IS NULL", side.at)
    match left, right:
        case nodes.Literal(value=bool()), nodes.Literal(value=other) if not isinstance(other, bool):
            raise Refused("a Boolean can't be compared with this", right.at)


def _is_condition(node: Node) -> bool:
    match node:
        case nodes.Literal(value=bool() | None):
            return True
        case nodes.Call(function=function):
            return function in _CONDITIONS
    return isinstance(node, nodes.CONDITIONS)
