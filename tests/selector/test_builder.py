"""Shapes of trees."""

from __future__ import annotations

import pytest

from jmsaio.errors import InvalidSelectorError
from jmsaio.model.values import Float, Long
from jmsaio.selector import nodes
from jmsaio.selector.builder import MAX_DEPTH
from jmsaio.selector.parser import parse


def test_not_binds_tighter_than_and_and_and_than_or() -> None:
    tree = parse("a = 1 OR NOT b = 2 AND c BETWEEN 1 AND 2 AND d")
    assert isinstance(tree, nodes.Or)
    second = tree.terms[1]
    assert isinstance(second, nodes.And) and len(second.terms) == 3
    assert isinstance(second.terms[0], nodes.Not) and isinstance(second.terms[0].operand, nodes.Compare)
    assert isinstance(second.terms[1], nodes.Between)


def test_the_starlight_grammar_binds_not_tighter() -> None:
    tree = parse("NOT a = 1", "starlight")
    assert isinstance(tree, nodes.Compare) and isinstance(tree.left, nodes.Not)


def test_chains_are_flat() -> None:
    tree = parse("a = 1 + 2 - 3 * 4 / 5")
    assert isinstance(tree, nodes.Compare) and isinstance(tree.right, nodes.Arithmetic)
    assert [operator for operator, _ in tree.right.rest] == ["+", "-"]
    assert tree.depth == 4
    assert parse(" AND ".join(["a"] * 1000)).depth == 2


def test_nodes_know_where_they_stand() -> None:
    tree = parse("  a >= 1 AND (b LIKE 'x')")
    assert isinstance(tree, nodes.And) and tree.at == 2
    compare, group = tree.terms
    assert isinstance(compare, nodes.Compare) and compare.operator_at == 4
    assert isinstance(group, nodes.Parentheses) and group.at == 14


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("-5", -5, int),
        ("- -5", 5, int),
        ("+5", 5, int),
        ("-5L", -5, Long),
        ("-9223372036854775808", -(2**63), Long),
        ("- -9223372036854775808", -(2**63), Long),
        ("-2147483648", -(2**31), Long),
        ("-1.5", -1.5, float),
        ("-1.5f", -1.5, Float),
    ],
)
def test_numbers_take_their_sign_in(text: str, value: float, kind: type) -> None:
    tree = parse(f"a = {text}")
    assert isinstance(tree, nodes.Compare) and isinstance(tree.right, nodes.Literal)
    assert (tree.right.value, type(tree.right.value)) == (value, kind)


def test_depth_is_limited() -> None:
    parse("(" * (MAX_DEPTH - 2) + "a = 1" + ")" * (MAX_DEPTH - 2))
    with pytest.raises(InvalidSelectorError, match="deeper"):
        parse("(" * (MAX_DEPTH - 1) + "a = 1" + ")" * (MAX_DEPTH - 1))
