"""The type pass of the jms dialect: refuses operands of impossible types when the selector is created.

Jakarta Messaging 3.1, 3.8.1 Message selector.

A name can have any type until a message is evaluated; the types of literals, arithmetic and conditions are known at
once.
"""

from __future__ import annotations

from typing import Final

from jmsaio.model.headers import FIELDS
from jmsaio.selector.nodes import (
    And,
    Arithmetic,
    Between,
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
    Refused,
    Sign,
    bare,
)  # fmt: skip
from jmsaio.selector.parser import BEYOND

#: Headers that selectors can't use.
FORBIDDEN: Final = frozenset(header.name for header in FIELDS if not header.selectable)

_ALLOWED: Final = [header.name for header in FIELDS if header.selectable]


def check(tree: Node) -> None:
    """Refuse a tree in which an operand can't have the required type.

    Raises:
        Refused: with the offset of the operand.
    """
    _condition(tree, "the selector")


def _describe(node: Node) -> str:
    match bare(node):
        case Literal(value=bool(value)):
            return str(value).upper()
        case Literal(value=str()):
            return "a string"
        case Literal():
            return "a number"
        case Name(name=name):
            return f"the name {name}"
        case Sign() | Arithmetic():
            return "arithmetic"
    return "a condition"


def _condition(node: Node, where: str) -> None:
    """Require ``node`` to be TRUE, FALSE or UNKNOWN."""
    match node:
        case Parentheses(inner=inner):
            _condition(inner, where)
        case And(terms=terms) | Or(terms=terms):
            word = "AND" if isinstance(node, And) else "OR"
            for term in terms:
                _condition(term, f"each side of {word}")
        case Not(operand=operand):
            _condition(operand, "the operand of NOT")
        case Compare(operator="=" | "<>" as operator, left=left, right=right):
            _value(left)
            _value(right)
            _same_family(left, right, operator)
        case Compare(operator=operator, left=left, right=right):
            _number(left, f"each side of {operator}")
            _number(right, f"each side of {operator}")
        case Between(subject=subject, low=low, high=high):
            for part in (subject, low, high):
                _number(part, "each operand of BETWEEN")
        case In(subject=subject):
            _identifier(subject, "IN")
        case Like(subject=subject):
            _identifier(subject, "LIKE")
        case IsNull(subject=subject):
            _identifier(subject, "IS NULL")
        case Name():
            _name(node)
        case Literal(value=bool()):
            return
        case _:
            raise Refused(f"{where} must be a condition, this is {_describe(node)}", node.at)


def _value(node: Node) -> None:
    """Require ``node`` to be an operand of = or <>: a string, number, Boolean, or a condition in parentheses."""
    inner = bare(node)
    match inner:
        case Literal(value=value):
            _in_range(inner, value)
        case Name() | Sign() | Arithmetic():
            _number(inner, "each side of the comparison")
        case _:
            _condition(inner, "each side of the comparison")


def _same_family(left: Node, right: Node, operator: str) -> None:
    """Refuse a Boolean literal compared with another literal: TRUE and FALSE are not names of properties."""
    match bare(left), bare(right):
        case Literal(value=one), Literal(value=other) if isinstance(one, bool) is not isinstance(other, bool):
            reason = f"{_describe(left)} {operator} {_describe(right)} compares a Boolean with a non-Boolean"
            raise Refused(f"{reason}; TRUE and FALSE can't be names", left.at)


def _number(node: Node, where: str) -> None:
    """Require ``node`` to be a number, or a name, which might be one."""
    match bare(node):
        case Name() as name:
            _name(name)
        case Literal(value=int() | float() as value) as literal if not isinstance(value, bool):
            _in_range(literal, value)
        case Sign(sign=sign, operand=operand):
            _number(operand, f"the operand of {sign}")
        case Arithmetic(first=first, rest=rest):
            for operator, operand in ((rest[0][0], first), *rest):
                _number(operand, f"each side of {operator}")
        case other:
            raise Refused(f"{where} must be a number or a name, this is {_describe(other)}", node.at)


def _identifier(node: Node, word: str) -> None:
    if not isinstance(node, Name):
        what = f"{_describe(node)}{' in parentheses' if isinstance(node, Parentheses) else ''}"
        raise Refused(f"the left side of {word} must be the name of a header or property, this is {what}", node.at)
    _name(node)


def _name(node: Name) -> None:
    if node.name in FORBIDDEN:
        allowed = f"{', '.join(_ALLOWED[:-1])} and {_ALLOWED[-1]}"
        raise Refused(f"the header {node.name} can't be used in a selector; allowed are {allowed}", node.at)


def _in_range(node: Literal, value: object) -> None:
    if value is BEYOND:
        raise Refused("9223372036854775808 fits in 64 bits only directly after a minus", node.at)
