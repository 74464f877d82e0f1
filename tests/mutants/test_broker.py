"""A hunt uses the broker that is there, and leaves none behind that it started."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from tests.mutants import broker
from tests.mutants.broker import shared_broker, variables
from tests.support.broker import SERVICE_URL, WEB_URL, TestBroker


class Launched(TestBroker):
    """Notes what is done with it; ``refuses``: it can't be started."""

    done: ClassVar[list[str]] = []
    refuses = False

    def __init__(self, folder: Path, memory: str) -> None:
        super().__init__("pulsar://own:1", "http://own:2")

    def start(self) -> None:
        self.done.append("start")
        if self.refuses:
            raise OSError("no Java")

    def kill(self) -> None:
        self.done.append("kill")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> type[Launched]:
    monkeypatch.delenv(SERVICE_URL, raising=False)
    monkeypatch.delenv(WEB_URL, raising=False)
    monkeypatch.setattr(broker, "LaunchedBroker", Launched)
    monkeypatch.setattr(Launched, "done", [])
    return Launched


def test_the_tests_of_a_hunt_are_told_its_broker(launched: type[Launched], tmp_path: Path) -> None:
    with shared_broker(tmp_path) as found:
        assert variables(found) == {SERVICE_URL: "pulsar://own:1", WEB_URL: "http://own:2"}
        assert launched.done == ["start"]
    assert launched.done == ["start", "kill"]


def test_a_hunt_that_fails_leaves_no_broker_behind(launched: type[Launched], tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), shared_broker(tmp_path):
        raise KeyboardInterrupt
    assert launched.done == ["start", "kill"]


def test_a_broker_that_does_not_start_is_ended(
    launched: type[Launched], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launched, "refuses", True)
    with pytest.raises(OSError, match="no Java"), shared_broker(tmp_path):
        pass
    assert launched.done == ["start", "kill"]


def test_a_broker_that_the_environment_names_is_used_and_keeps_running(
    launched: type[Launched], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {SERVICE_URL: "pulsar://there:1", WEB_URL: "http://there:2"}
    for name, value in named.items():
        monkeypatch.setenv(name, value)
    with shared_broker(tmp_path) as found:
        assert variables(found) == named
    assert launched.done == []
