"""Walking trees, and the error with its excerpt."""

from __future__ import annotations

from jmsaio.selector import nodes
from jmsaio.selector.nodes import refusal
from jmsaio.selector.parser import parse

TEXT = "NOT (a = 1) AND b BETWEEN 1 AND c OR d IN ('x') OR e LIKE 'y' OR f IS NULL OR -g + 1 > 2 OR REGEX('r', h)"


def names(node: nodes.Node) -> list[str]:
    if isinstance(node, nodes.Name):
        return [node.name]
    return [name for child in nodes.children(node) for name in names(child)]


def test_children_reach_every_name_in_order() -> None:
    assert names(parse(TEXT, "starlight")) == list("abcdefgh")


def test_parentheses_and_plus_signs() -> None:
    tree = parse("+(a) = 1", "starlight")
    assert isinstance(tree, nodes.Compare)
    assert isinstance(nodes.bare(tree.left), nodes.Sign)
    assert isinstance(nodes.plain(tree.left), nodes.Name)


def test_the_place_is_marked() -> None:
    error = refusal("no", "a = ;", 4)
    assert (error.text, error.column) == ("a = ;", 5)
    assert error.reason == "selector, column 5: no\n  a = ;\n      ^"


def test_long_texts_are_cut_and_stay_on_one_line() -> None:
    text = "a\n" * 100
    reason = refusal("no", text, 100).reason
    line, pointer = reason.splitlines()[1:]
    assert line.startswith("  ...") and line.endswith("...") and len(line) < 80
    assert line[len(pointer) - 1] == "a"
