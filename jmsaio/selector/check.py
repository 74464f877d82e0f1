"""The type pass of the jms dialect: refuses operands of impossible types when the selector is created.

Jakarta Messaging 3.1, 3.8.1 Message selector.

A name can have any type until a message is evaluated; the types of literals, arithmetic and conditions are known at
once.
"""

from __future__ import annotations

from typing import Final

from jmsaio.model.headers import FIELDS
from jmsaio.selector import nodes
from jmsaio.selector.nodes import Node, Refused
from jmsaio.selector.parser import BEYOND

#: Headers that selectors can't use.
FORBIDDEN: Final = frozenset(header.name for header in FIELDS if not header.selectable)

_ALLOWED: Final = [header.name for header in FIELDS if header.selectable]


def check(tree: Node) -> None:
    """Raise Refused, with the offset of the operand, if an operand can't have the required type."""
    _condition(tree, "the selector")


def _describe(node: Node) -> str:
    match nodes.bare(node):
        case nodes.Literal(value=bool(value)):
            return str(value).upper()
        case nodes.Literal(value=str()):
            return "a string"
        case nodes.Literal():
            return "a number"
        case nodes.Name(name=name):
            return f"the name {name}"
        case nodes.Sign() | nodes.Arithmetic():
            return "arithmetic"
    return "a condition"


def _condition(node: Node, where: str) -> None:
    """Require ``node`` to be TRUE, FALSE or UNKNOWN."""
    match node:
        case nodes.Parentheses(inner=inner):
            _condition(inner, where)
        case nodes.And(terms=terms) | nodes.Or(terms=terms):
            word = "AND" if isinstance(node, nodes.And) else "OR"
            for term in terms:
                _condition(term, f"each side of {word}")
        case nodes.Not(operand=operand):
            _condition(operand, "the operand of NOT")
        case nodes.Compare(operator="=" | "<>" as operator, left=left, right=right):
            _value(left)
            _value(right)
            _same_family(left, right, operator)
        case nodes.Compare(operator=operator, left=left, right=right):
            _number(left, f"each side of {operator}")
            _number(right, f"each side of {operator}")
        case nodes.Between(subject=subject, low=low, high=high):
            for part in (subject, low, high):
                _number(part, "each operand of BETWEEN")
        case nodes.In(subject=subject):
            _identifier(subject, "IN")
        case nodes.Like(subject=subject):
            _identifier(subject, "LIKE")
        case nodes.IsNull(subject=subject):
            _identifier(subject, "IS NULL")
        case nodes.Name():
            _name(node)
        case nodes.Literal(value=bool()):
            return
        case _:
            raise Refused(f"{where} must be a condition, this is {_describe(node)}", node.at)


def _value(node: Node) -> None:
    """Require ``node`` to be an operand of = or <>: a string, number, Boolean, or a condition in parentheses."""
    inner = nodes.bare(node)
    match inner:
        case nodes.Literal(value=value):
            _in_range(inner, value)
        case nodes.Name() | nodes.Sign() | nodes.Arithmetic():
            _number(inner, "each side of the comparison")
        case _:
            _condition(inner, "each side of the comparison")


def _same_family(left: Node, right: Node, operator: str) -> None:
    """Refuse a Boolean literal compared with another literal: TRUE and FALSE are not names of properties."""
    match nodes.bare(left), nodes.bare(right):
        case nodes.Literal(value=one), nodes.Literal(value=other) if isinstance(one, bool) is not isinstance(
            other, bool
        ):
            reason = f"{_describe(left)} {operator} {_describe(right)} compares a Boolean with a non-Boolean"
            raise Refused(f"{reason}; TRUE and FALSE can't be names", left.at)


def _number(node: Node, where: str) -> None:
    """Require ``node`` to be a number, or a name, which might be one."""
    match nodes.bare(node):
        case nodes.Name() as name:
            _name(name)
        case nodes.Literal(value=int() | float() as value) as literal if not isinstance(value, bool):
            _in_range(literal, value)
        case nodes.Sign(sign=sign, operand=operand):
            _number(operand, f"the operand of {sign}")
        case nodes.Arithmetic(first=first, rest=rest):
            for operator, operand in ((rest[0][0], first), *rest):
                _number(operand, f"each side of {operator}")
        case other:
            raise Refused(f"{where} must be a number or a name, this is {_describe(other)}", node.at)


def _identifier(node: Node, word: str) -> None:
    if not isinstance(node, nodes.Name):
        what = f"{_describe(node)}{' in parentheses' if isinstance(node, nodes.Parentheses) else ''}"
        raise Refused(f"the left side of {word} must be the name of a header or property, this is {what}", node.at)
    _name(node)


def _name(node: nodes.Name) -> None:
    if node.name in FORBIDDEN:
        allowed = f"{', '.join(_ALLOWED[:-1])} and {_ALLOWED[-1]}"
        raise Refused(f"the header {node.name} can't be used in a selector; allowed are {allowed}", node.at)


def _in_range(node: nodes.Literal, value: object) -> None:
    if value is BEYOND:
        raise Refused("9223372036854775808 fits in 64 bits only directly after a minus", node.at)
