"""The syntax tree of a selector: frozen nodes, each with its offset in the text.

One set of nodes serves both dialects; nodes of the Starlight dialect only are marked as such. Chains of AND, OR, ``+
-`` and ``* / %`` are one node with many parts, so that a long chain is not a deep tree.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs


#: A literal too large for a long, which the ActiveMQ engine keeps as a BigDecimal (Starlight dialect only).
class Big(int):
    """An integer beyond 64 bits; it equals only another one of the same value."""


@attrs.frozen
class Literal:
    """A constant: canonical value (str, bool, int, Long, Float, float), or None for NULL."""

    value: object
    at: int
    depth: int = 1


@attrs.frozen
class Name:
    """A header or property name."""

    name: str
    at: int
    depth: int = 1


@attrs.frozen
class Parentheses:
    """An expression in parentheses."""

    inner: Node
    at: int
    depth: int


@attrs.frozen
class Sign:
    """Unary ``-`` or ``+``."""

    sign: str
    operand: Node
    at: int
    depth: int


@attrs.frozen
class Arithmetic:
    """``first`` followed by (operator, operand) pairs of one level of precedence, evaluated left to right."""

    first: Node
    rest: tuple[tuple[str, Node], ...]
    at: int
    depth: int


@attrs.frozen
class Compare:
    """``= <> < <= > >=``; ``operator_at`` is the offset of the operator."""

    operator: str
    left: Node
    right: Node
    at: int
    operator_at: int
    depth: int


@attrs.frozen
class Between:
    """``subject [NOT] BETWEEN low AND high``."""

    subject: Node
    low: Node
    high: Node
    negated: bool
    at: int
    depth: int


@attrs.frozen
class In:
    """``subject [NOT] IN ('a', 'b')``."""

    subject: Node
    values: tuple[str, ...]
    negated: bool
    at: int
    depth: int


@attrs.frozen
class Like:
    """``subject [NOT] LIKE 'pattern' [ESCAPE 'c']``; the offsets are those of the two literals."""

    subject: Node
    pattern: Literal
    escape: Literal | None
    negated: bool
    at: int
    depth: int


@attrs.frozen
class IsNull:
    """``subject IS [NOT] NULL``."""

    subject: Node
    negated: bool
    at: int
    depth: int


@attrs.frozen
class Not:
    """``NOT operand``."""

    operand: Node
    at: int
    depth: int


@attrs.frozen
class And:
    """Two or more terms joined by AND."""

    terms: tuple[Node, ...]
    at: int
    depth: int


@attrs.frozen
class Or:
    """Two or more terms joined by OR."""

    terms: tuple[Node, ...]
    at: int
    depth: int


@attrs.frozen
class Call:
    """A function call (Starlight dialect only)."""

    function: str
    arguments: tuple[Node, ...]
    at: int
    depth: int


Node = Literal | Name | Parentheses | Sign | Arithmetic | Compare | Between | In | Like | IsNull | Not | And | Or | Call


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


def deeper(parts: Iterable[Node]) -> int:
    """Return the depth of a node with the children ``parts``."""
    return 1 + max(part.depth for part in parts)


def bare(node: Node) -> Node:
    """Return ``node`` without parentheses around it."""
    while isinstance(node, Parentheses):
        node = node.inner
    return node


def plain(node: Node) -> Node:
    """Return ``node`` without parentheses and plus signs, which the Java engine's tree does not contain."""
    while isinstance(node, Parentheses) or (isinstance(node, Sign) and node.sign == "+"):
        node = node.inner if isinstance(node, Parentheses) else node.operand
    return node
