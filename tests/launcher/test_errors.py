"""The launcher's errors: one tree below JMSError, with their data."""

from __future__ import annotations

import pytest

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
