"""Destructive commands ask on a terminal, and need --yes elsewhere."""

import sys

import click
import pytest

from jmsaio.cli.common.asking import agreed


def test_yes_needs_no_terminal() -> None:
    assert agreed("delete it?", True)


def test_without_a_terminal_yes_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(click.UsageError, match="--yes"):
        agreed("delete it?", False)


@pytest.mark.parametrize(("answer", "result"), [("y", True), ("n", False), ("", False)])
def test_the_answer_on_a_terminal_decides(answer: str, result: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(click.termui, "visible_prompt_func", lambda prompt: answer)
    assert agreed("delete it?", False) is result
