"""Grammar rules to nodes: the methods that lark calls, bottom up, while it parses."""

from __future__ import annotations

from typing import Any

from lark import Token, Transformer, v_args

from jmsaio.model.values import Float, Long
from jmsaio.selector.literals import BEYOND, LONG_MIN, jms_number, starlight_number, string_value
from jmsaio.selector.nodes import (
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Name,
    Node,
    Not,
    Or,
    Parentheses,
    Sign,
    deeper,
)  # fmt: skip
from jmsaio.selector.numbers import wrap_long
from jmsaio.selector.refusal import Refused

#: Maximum nesting of parentheses, signs, NOT and operators.
MAX_DEPTH = 64


def _start(item: Token | Node) -> int:
    """Return the offset of a token or node."""
    return (item.start_pos or 0) if isinstance(item, Token) else int(item.at)


def _checked(node: Node) -> Node:
    if node.depth > MAX_DEPTH:
        raise Refused(f"nested deeper than {MAX_DEPTH} levels", node.at)
    return node


@v_args(inline=True)
class Builder(Transformer[Token, Node]):
    """One method per rule or alias of the two grammars.

    Args:
        dialect: ``jms`` or ``starlight``; it decides how numbers are parsed.
    """

    def __init__(self, dialect: str) -> None:
        super().__init__(visit_tokens=False)
        self._number = jms_number if dialect == "jms" else starlight_number
        self._folds = dialect == "jms"

    def start(self, node: Node) -> Node:
        """Return the whole selector."""
        return node

    def any_of(self, *parts: Any) -> Node:
        """Join terms by OR."""
        if len(parts) == 1:
            return parts[0]  # type: ignore[no-any-return]  # lark's children are untyped
        terms = parts[::2]
        return _checked(Or(terms, terms[0].at, deeper(terms)))

    def all_of(self, *parts: Any) -> Node:
        """Join terms by AND."""
        if len(parts) == 1:
            return parts[0]  # type: ignore[no-any-return]  # lark's children are untyped
        terms = parts[::2]
        return _checked(And(terms, terms[0].at, deeper(terms)))

    def negation(self, word: Token, operand: Node) -> Node:
        """Negate a condition (NOT)."""
        return _checked(Not(operand, _start(word), deeper((operand,))))

    def comparison(self, token: Token) -> Token:
        """Return one of the six operators."""
        return token

    def compare(self, left: Node, operator: Token, right: Node) -> Node:
        """Compare two operands."""
        return _checked(Compare(str(operator), left, right, left.at, _start(operator), deeper((left, right))))

    def between(self, subject: Node, *rest: Any) -> Node:
        """Build [NOT] BETWEEN low AND high."""
        low, high = rest[-3], rest[-1]
        negated = rest[0].type == "NOT"
        return _checked(Between(subject, low, high, negated, subject.at, deeper((subject, low, high))))

    def inside(self, subject: Node, *rest: Any) -> Node:
        """Build [NOT] IN (strings)."""
        values = tuple(str(item.value) for item in rest if isinstance(item, Literal))
        return _checked(In(subject, values, rest[0].type == "NOT", subject.at, deeper((subject,))))

    def like(self, subject: Node, *rest: Any) -> Node:
        """Build [NOT] LIKE pattern [ESCAPE character]."""
        pattern, *escape = (item for item in rest if isinstance(item, Literal))
        negated = rest[0].type == "NOT"
        character = escape[0] if escape else None
        if character is not None and len(str(character.value)) != 1:
            raise Refused("ESCAPE needs a string of exactly one character", character.at)
        return _checked(Like(subject, pattern, character, negated, subject.at, deeper((subject,))))

    def is_null(self, subject: Node, *rest: Token) -> Node:
        """Build IS [NOT] NULL."""
        return _checked(IsNull(subject, rest[1].type == "NOT", subject.at, deeper((subject,))))

    def arithmetic(self, first: Node, *rest: Any) -> Node:
        """Build a chain of operators of one level."""
        if not rest:
            return first
        pairs = tuple((str(operator), operand) for operator, operand in zip(rest[::2], rest[1::2], strict=True))
        return _checked(Arithmetic(first, pairs, first.at, deeper((first, *(operand for _, operand in pairs)))))

    def signed(self, sign: Token, operand: Node) -> Node:
        """Build a sign; in the jms dialect it is folded into a number at once, so that -2^63 can be written."""
        at = _start(sign)
        if self._folds and isinstance(operand, Literal) and isinstance(operand.value, (int, float)):
            folded = _folded(str(sign), operand.value)
            if folded is not None:
                return Literal(folded, at)
        return _checked(Sign(str(sign), operand, at, deeper((operand,))))

    def name(self, token: Token) -> Node:
        """Build a header or property name."""
        return Name(str(token), _start(token))

    def number(self, token: Token) -> Node:
        """Build a number."""
        try:
            return Literal(self._number(str(token)), _start(token))
        except ValueError as error:
            raise Refused(str(error), _start(token)) from None

    def string(self, token: Token) -> Node:
        """Build a string."""
        return Literal(string_value(str(token)), _start(token))

    def boolean(self, token: Token) -> Node:
        """Build TRUE or FALSE."""
        return Literal(token.type == "TRUE", _start(token))

    def null(self, token: Token) -> Node:
        """Build NULL as an operand (Starlight dialect)."""
        return Literal(None, _start(token))

    def group(self, inner: Node) -> Node:
        """Build parentheses; the node's offset is that of its content."""
        return _checked(Parentheses(inner, inner.at, deeper((inner,))))

    def call(self, function: Token, *arguments: Node) -> Node:
        """Build a function call (Starlight dialect)."""
        return _checked(Call(str(function), arguments, _start(function), deeper(arguments)))


def _folded(sign: str, value: int | float) -> int | float | None:
    """Return the number with its sign and its own type, or None if it can't be signed here (TRUE, +2^63)."""
    if value is BEYOND:
        return Long(LONG_MIN) if sign == "-" else None
    if isinstance(value, bool):
        return None
    if sign == "+":
        return value
    if isinstance(value, Long):
        return Long(wrap_long(-value))
    return Float(-value) if isinstance(value, Float) else -value
