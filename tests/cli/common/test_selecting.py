"""The options with which commands select: the same text and values wherever a command has them."""

from __future__ import annotations

import click
import pytest

from jmsaio.cli.app import app
from jmsaio.cli.common.selecting import full_name, with_options


def test_several_options_are_shown_in_the_order_in_which_they_are_given() -> None:
    command = click.command()(with_options(lambda **_: None, *map(click.option, ("--one", "--two", "--three"))))
    assert [each.name for each in command.params] == ["one", "two", "three"]


def test_a_bare_name_gets_its_kind_and_a_full_one_keeps_it() -> None:
    assert full_name("orders", topic=False) == "queue://orders"
    assert full_name("orders", topic=True) == "topic://orders"
    assert full_name("topic://orders", topic=False) == "topic://orders"


@pytest.mark.parametrize("option", ["topic", "of", "to", "max_redrives"])
def test_both_redrives_have_the_same_options(option: str) -> None:
    def params(*path: str) -> dict[str, click.Parameter]:
        command: click.Command = app
        for name in path:
            assert isinstance(command, click.Group)
            command = command.commands[name]
        return {str(each.name): each for each in command.params}

    one, other = params("dlq", "redrive")[option], params("spark", "dlq", "redrive")[option]
    assert isinstance(one, click.Option) and isinstance(other, click.Option)
    assert (one.opts, one.help, one.default) == (other.opts, other.help, other.default)
