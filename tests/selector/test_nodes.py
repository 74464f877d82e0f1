"""Walking trees."""

from __future__ import annotations

from jmsaio.selector import nodes
from jmsaio.selector.parser import parse

TEXT = "NOT (a = 1) AND b BETWEEN 1 AND c OR d IN ('x') OR e LIKE 'y' OR f IS NULL OR -g + 1 > 2 OR REGEX('r', h)"


def names(node: nodes.Node) -> list[str]:
    if isinstance(node, nodes.Name):
        return [node.name]
    return [name for child in nodes.children(node) for name in names(child)]


def test_children_reach_every_name_in_order() -> None:
    assert names(parse(TEXT, "starlight")) == list("abcdefgh")


def test_depth_counts_levels() -> None:
    assert parse("a").depth == 1
    assert parse("((a))").depth == 3
    assert parse("a = 1 AND (b + 1 = 2)").depth == 5


def test_parentheses_and_plus_signs() -> None:
    tree = parse("+(a) = 1", "starlight")
    assert isinstance(tree, nodes.Compare)
    assert isinstance(nodes.bare(tree.left), nodes.Sign)
    assert isinstance(nodes.plain(tree.left), nodes.Name)
