"""The group of commands."""

from __future__ import annotations

import pytest

from jmsaio.cli.app import main
from jmsaio.cli.common.output import OK


def test_the_group_alone_shows_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark"]) == OK
    output = capsys.readouterr().out
    assert all(name in output for name in ("archive", "check", "replay", "status"))
