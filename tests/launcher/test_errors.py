"""The launcher's errors: one tree below JMSError, with their data."""

from __future__ import annotations

import importlib
import sys

import pytest

from jmsaio import launcher
from jmsaio.errors import JMSError
from jmsaio.launcher import DownloadError, LauncherError, PortTakenError, StartError, ToolError


@pytest.mark.parametrize("kind", [ToolError, DownloadError, PortTakenError, StartError])
def test_all_are_launcher_errors(kind: type[LauncherError]) -> None:
    error = kind("what happened")
    assert isinstance(error, LauncherError)
    assert isinstance(error, JMSError)
    assert str(error) == error.reason == "what happened"


def test_errors_carry_their_data() -> None:
    assert ToolError("", "mvn").tool == "mvn"
    assert DownloadError("", "[ERROR] x").output == "[ERROR] x"
    assert PortTakenError("", 6650).port == 6650
    assert StartError("", "last line").log_tail == "last line"


def test_on_windows_the_launcher_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(LauncherError, match="needs Linux or macOS"):
        importlib.reload(launcher)
