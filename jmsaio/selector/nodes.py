"""The syntax tree of a selector, and the error of an invalid part.

One set of frozen nodes serves both dialects; nodes of the Starlight dialect only are marked as such. Chains of AND, OR,
``+ -`` and ``* / %`` are one node with many parts, so that a long chain is not a deep tree.
"""

from __future__ import annotations

import attrs

from jmsaio.errors import InvalidSelectorError

#: Number of characters shown on each side of the position.
_SIDE = 30


class Refused(Exception):
    """A part of a selector is invalid at an offset; becomes InvalidSelectorError where the text is known."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


def refusal(reason: str, text: str, at: int) -> InvalidSelectorError:
    """Return the error for ``text``, with a second and third line that show the position.

    Its column counts from the start of the text even if the text has several lines.
    """
    start, end = max(0, at - _SIDE), at + _SIDE
    head, tail = "..." if start > 0 else "", "..." if end < len(text) else ""
    excerpt = "".join(character if character.isprintable() else " " for character in text[start:end])
    pointer = " " * (len(head) + at - start) + "^"
    message = f"selector, column {at + 1}: {reason}\n  {head}{excerpt}{tail}\n  {pointer}"
    return InvalidSelectorError(message, text=text, column=at + 1)


class Big(int):
    """A literal too large for a long, which the ActiveMQ engine keeps as a BigDecimal (Starlight dialect only)."""


@attrs.frozen
class Node:
    """A part of a selector; ``at`` is its offset in the text; of parentheses, the offset of their content."""

    at: int = attrs.field(kw_only=True)


@attrs.frozen
class Literal(Node):
    """A constant: canonical value (str, bool, int, Long, Float, float), or None for NULL."""

    value: object


@attrs.frozen
class Name(Node):
    """A header or property name."""

    name: str


@attrs.frozen
class Parentheses(Node):
    """An expression in parentheses."""

    inner: Node


@attrs.frozen
class Sign(Node):
    """Unary ``-`` or ``+``."""

    sign: str
    operand: Node


@attrs.frozen
class Arithmetic(Node):
    """``first`` followed by (operator, operand) pairs of one level of precedence, evaluated left to right."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


@attrs.frozen
class Compare(Node):
    """``= <> < <= > >=``."""

    operator: str
    left: Node
    right: Node


@attrs.frozen
class Between(Node):
    """``subject [NOT] BETWEEN low AND high``."""

    subject: Node
    low: Node
    high: Node
    negated: bool


@attrs.frozen
class In(Node):
    """``subject [NOT] IN ('a', 'b')``."""

    subject: Node
    values: tuple[str, ...]
    negated: bool


@attrs.frozen
class Like(Node):
    """``subject [NOT] LIKE 'pattern' [ESCAPE 'c']``"""

    subject: Node
    pattern: Literal
    escape: Literal | None
    negated: bool


@attrs.frozen
class IsNull(Node):
    """``subject IS [NOT] NULL``."""

    subject: Node
    negated: bool


@attrs.frozen
class Not(Node):
    """``NOT operand``."""

    operand: Node


@attrs.frozen
class And(Node):
    """Two or more terms joined by AND."""

    terms: tuple[Node, ...]


@attrs.frozen
class Or(Node):
    """Two or more terms joined by OR."""

    terms: tuple[Node, ...]


@attrs.frozen
class Call(Node):
    """A function call (Starlight dialect only)."""

    function: str
    arguments: tuple[Node, ...]


#: What is TRUE, FALSE or UNKNOWN, except names, literals and calls.
CONDITIONS = (And, Or, Not, Compare, Between, In, Like, IsNull)


def children(node: Node) -> tuple[Node, ...]:
    """Return the direct children of ``node``, in the order of the text."""
    match node:
        case Parentheses(inner=inner):
            return (inner,)
        case Sign(operand=operand) | Not(operand=operand):
            return (operand,)
        case Arithmetic(first=first, rest=rest):
            return (first, *(operand for _, operand in rest))
        case Compare(left=left, right=right):
            return (left, right)
        case Between(subject=subject, low=low, high=high):
            return (subject, low, high)
        case In(subject=subject) | Like(subject=subject) | IsNull(subject=subject):
            return (subject,)
        case And(terms=terms) | Or(terms=terms):
            return terms
        case Call(arguments=arguments):
            return arguments
    return ()


def bare(node: Node) -> Node:
    while isinstance(node, Parentheses):
        node = node.inner
    return node


def plain(node: Node) -> Node:
    """Return ``node`` without parentheses and plus signs, which the Java engine's tree does not contain."""
    while isinstance(node, Parentheses) or (isinstance(node, Sign) and node.sign == "+"):
        node = node.inner if isinstance(node, Parentheses) else node.operand
    return node
