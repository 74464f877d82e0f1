"""Where the jms dialect deliberately differs from the ActiveMQ engine, one predicate a line.

A predicate looks at one selector and one set of values and says whether the situation in which the two differ occurs
in it. The differential test asks the predicates for each disagreement; one that none explains fails the test.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator

import attrs

from jmsaio.errors import InvalidSelectorError
from jmsaio.model.values import Byte, Float, Long, Short
from jmsaio.selector import evaluation, nodes, parser
from jmsaio.selector.generate import FORBIDDEN
from jmsaio.selector.nodes import Big, Node
from tests.selector.generator import Values

Answer = Callable[[Node, Values], bool]


@attrs.frozen
class Deviation:
    """One known difference.

    Attributes:
        name: what differs.
        applies: whether a node and the values are such a case.
        refused: the specification's side refuses the selector, so the tree is the ActiveMQ grammar's.
    """

    name: str
    applies: Answer
    refused: bool = False


@functools.lru_cache(maxsize=64)
def tree(text: str, dialect: str) -> Node | None:
    """The syntax tree, or None for what the grammar does not take."""
    try:
        return parser.parse(text, dialect)
    except InvalidSelectorError:
        return None


def walk(node: Node) -> Iterator[Node]:
    """A node and all below it."""
    yield node
    for child in nodes.children(node):
        yield from walk(child)


def value(node: Node, values: Values) -> object:
    """What an operand is worth by the rules of the jms dialect; True stands for any condition."""
    node = nodes.bare(node)
    match node:
        case nodes.Name(name=name):
            return values.get(name)
        case nodes.Literal(value=constant):
            return constant
        case nodes.Sign(sign=sign, operand=operand):
            inner = value(operand, values)
            return evaluation.negate(inner) if sign == "-" else evaluation.positive(inner)
        case nodes.Arithmetic(first=first, rest=rest):
            operands = (first, *(operand for _, operand in rest))
            return evaluation.fold(tuple(name for name, _ in rest), tuple(value(part, values) for part in operands))
    return True


def comparisons(node: Node) -> list[tuple[str, Node, Node]]:
    """The comparisons that a node makes."""
    match node:
        case nodes.Compare(operator=operator, left=left, right=right):
            return [(operator, left, right)]
        case nodes.Between(subject=subject, low=low, high=high):
            return [("<", subject, low), (">", subject, high)]
    return []


def steps(node: Node, values: Values) -> list[tuple[str, object, object]]:
    """The operations of arithmetic that a node makes, with their operands."""
    if not isinstance(node, nodes.Arithmetic):
        return []
    found, result = [], value(node.first, values)
    for operator, operand in node.rest:
        other = value(operand, values)
        found.append((operator, result, other))
        result = evaluation.fold((operator,), (result, other))
    return found


def compared(test: Callable[[str, object, object], bool]) -> Answer:
    """A predicate over the operator and operands of comparisons."""
    return lambda node, values: any(
        test(operator, value(left, values), value(right, values)) for operator, left, right in comparisons(node)
    )


def computed(test: Callable[[str, object, object], bool]) -> Answer:
    """A predicate over the operator and operands of arithmetic."""
    return lambda node, values: any(test(*step) for step in steps(node, values))


def family(item: object) -> str:
    """string, boolean or number; null and mismatch are families of their own here."""
    if isinstance(item, bool):
        return "boolean"
    if isinstance(item, str):
        return "string"
    return "number" if evaluation.rank(item) else str(item)


def _not_binds_tighter(node: Node, values: Values) -> bool:
    tests = (nodes.Compare, nodes.Between, nodes.In, nodes.Like, nodes.IsNull)
    return isinstance(node, nodes.Not) and isinstance(node.operand, tests)


def _unlike(operator: str, left: object, right: object) -> bool:
    return operator == "<>" and None not in (left, right) and family(left) != family(right)


def _right_missing(operator: str, left: object, right: object) -> bool:
    return operator in ("=", "<>") and right is None


def _right_narrow(operator: str, left: object, right: object) -> bool:
    wider = isinstance(right, (Byte, Short)) and family(left) == "number" and type(left) is not type(right)
    return wider and not (isinstance(left, Byte) and isinstance(right, Short))


def _double_against_float(operator: str, left: object, right: object) -> bool:
    return type(left) is float and isinstance(right, (Float, float))


def _ordered_texts(operator: str, left: object, right: object) -> bool:
    return operator not in ("=", "<>") and family(left) == family(right) and family(left) in ("string", "boolean")


def _total_order(operator: str, left: object, right: object) -> bool:
    def odd(item: object) -> bool:
        return isinstance(item, float) and (math.isnan(item) or (item == 0 and math.copysign(1, item) < 0))

    return odd(left) or odd(right)


def _no_number(operator: str, left: object, right: object) -> bool:
    return None not in (left, right) and (family(left), family(right)) != ("number", "number")


def _sign_of(kinds: tuple[type, ...] | None) -> Answer:
    """A minus before a value of these classes, or before what is no number."""

    def applies(node: Node, values: Values) -> bool:
        if not isinstance(node, nodes.Sign) or node.sign != "-":
            return False
        inner = value(node.operand, values)
        if kinds is not None:
            return isinstance(inner, kinds)
        return inner is not None and family(inner) != "number"

    return applies


def _not_like(node: Node, values: Values) -> bool:
    if not isinstance(node, nodes.Like) or not node.negated:
        return False
    subject = value(node.subject, values)
    return subject is not None and not isinstance(subject, str)


def _whole_division(operator: str, left: object, right: object) -> bool:
    return operator == "/" and isinstance(left, int) and isinstance(right, int)


def _float_arithmetic(operator: str, left: object, right: object) -> bool:
    return isinstance(left, Float) or isinstance(right, Float)


def _small_long(node: Node, values: Values) -> bool:
    if not isinstance(node, nodes.Arithmetic):
        return False
    operands = [nodes.bare(child) for child in nodes.children(node)]
    literals = [item.value for item in operands if isinstance(item, nodes.Literal)]
    return any(isinstance(item, Long) and evaluation.wrap_int(item) == item for item in literals)


def _boolean_beside_literal(node: Node, values: Values) -> bool:
    if not isinstance(node, nodes.Compare):
        return False
    operands = [nodes.bare(child) for child in nodes.children(node)]
    operands = [nodes.bare(item.operand) if isinstance(item, nodes.Sign) else item for item in operands]
    booleans = [isinstance(item.value, bool) for item in operands if isinstance(item, nodes.Literal)]
    return sorted(booleans) == [False, True]


def _subject_is_no_name(node: Node, values: Values) -> bool:
    return isinstance(node, (nodes.In, nodes.Like, nodes.IsNull)) and not isinstance(node.subject, nodes.Name)


def _text_in_arithmetic(node: Node, values: Values) -> bool:
    if not isinstance(node, (nodes.Arithmetic, nodes.Sign)):
        return False
    conditions = (nodes.Compare, nodes.Not, nodes.And, nodes.Or, nodes.In, nodes.Like, nodes.IsNull, nodes.Between)
    operands = [nodes.bare(child) for child in nodes.children(node)]
    return any(
        isinstance(item, conditions) or (isinstance(item, nodes.Literal) and isinstance(item.value, (str, bool)))
        for item in operands
    )


def _null(node: Node, values: Values) -> bool:
    return isinstance(node, nodes.Literal) and node.value is None


def _beyond(node: Node, values: Values) -> bool:
    return isinstance(node, nodes.Literal) and isinstance(node.value, Big)


def _chain(node: Node, values: Values) -> bool:
    below = nodes.children(node)
    tests = (nodes.Compare, nodes.Between, nodes.In, nodes.Like, nodes.IsNull, nodes.Not)
    return isinstance(node, tests[:-1]) and any(isinstance(child, tests) for child in below)


def _forbidden(node: Node, values: Values) -> bool:
    return isinstance(node, nodes.Name) and node.name in FORBIDDEN


def _modulo(node: Node, values: Values) -> bool:
    return isinstance(node, nodes.Arithmetic) and any(operator == "%" for operator, _ in node.rest)


#: Both sides take the selector and answer differently.
ANSWERS = (
    Deviation("NOT before a comparison binds to its first operand", _not_binds_tighter),
    Deviation("<> on unlike types is TRUE", compared(_unlike)),
    Deviation("NULL on the right of = and <> is FALSE, on both sides TRUE", compared(_right_missing)),
    Deviation("byte and short on the right of a wider number compare as FALSE", compared(_right_narrow)),
    Deviation("a double against a float throws", compared(_double_against_float)),
    Deviation("strings and Booleans are ordered", compared(_ordered_texts)),
    Deviation("NaN equals itself, -0.0 is below 0.0", compared(_total_order)),
    Deviation("NOT LIKE on what is no string is TRUE", _not_like),
    Deviation("integer division gives a double", computed(_whole_division)),
    Deviation("arithmetic on a float is done in double", computed(_float_arithmetic)),
    Deviation("the L of a literal that fits in an int is ignored", _small_long),
    Deviation("arithmetic on what is no number concatenates or throws", computed(_no_number)),
    Deviation("a minus before a byte or short throws", _sign_of((Byte, Short))),
    Deviation("a minus before what is no number gives NULL", _sign_of(None)),
)

#: The ActiveMQ grammar takes what the specification does not; the tree is that of the ActiveMQ grammar.
MORE = (
    Deviation("IN, LIKE and IS NULL on something else than a name", _subject_is_no_name),
    Deviation("a string or condition in arithmetic", _text_in_arithmetic),
    Deviation("NULL as an operand", _null),
    Deviation("an integer beyond 64 bits", _beyond),
    Deviation("comparisons in a chain, NOT as an operand", _chain),
    Deviation("a header that selectors may not name", _forbidden),
    Deviation("%", _modulo),
    Deviation("a Boolean literal beside one of another type", _boolean_beside_literal),
)

#: Forms of text that one side reads otherwise than the other.
COMMENTS = ("comments", re.compile(r"/\*|--[^\n\r]*[\n\r]"))
TEXTS = (
    ("float suffixes, L on hexadecimal and octal numbers", re.compile(
        r"(?<![\w$.])(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]|0(?:[xX][0-9a-fA-F]+|[0-7]*)[lL])\b")),
    ("an integer beyond 64 bits", re.compile(r"[0-9]{19}")),
    ("names outside ASCII", re.compile(r"[^\x00-\x7f]")),
    ("XPATH and XQUERY are reserved", re.compile(r"\b(?:xpath|xquery)\b", re.IGNORECASE)),
    ("a number runs into a word or number", re.compile(
        r"(?<![\w$.])(?>0[xX][0-9a-fA-F]+|(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][+-]?[0-9]+)?[lL]?)(?=[\w$.])|\b0[0-7]*[89]")),
)  # fmt: skip
_STRING = re.compile(r"'(?:''|[^'])*'")


def explain(text: str, values: Values, ours: str, java: str) -> str | None:
    """The name of the first deviation that explains a disagreement, or None."""
    if COMMENTS[1].search(text):
        return COMMENTS[0]  # one that begins outside a string may end inside
    if ours != "invalid" and java != "invalid":
        return _first(ANSWERS, tree(text, "jms"), values)
    bare = _STRING.sub("''", text)
    for name, pattern in TEXTS:
        if pattern.search(bare):
            return name
    if ours == "invalid":
        return _first(MORE, tree(text, "starlight"), values)
    if _first(ANSWERS[:1], tree(text, "jms"), values) is not None:
        return ANSWERS[0].name
    booleans = re.search(r"\b(?:true|false)\b\s*(?:=|<>)", bare, re.IGNORECASE)
    return "a Boolean literal on the left of another literal" if booleans else None


def _first(table: tuple[Deviation, ...], node: Node | None, values: Values) -> str | None:
    parts = [] if node is None else list(walk(node))
    for deviation in table:
        if any(deviation.applies(part, values) for part in parts):
            return deviation.name
    return None
