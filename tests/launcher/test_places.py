"""Where downloads and state lie, and the lock around them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from jmsaio.launcher.maven import fetch_broker
from jmsaio.launcher.places import BROKER_VERSION, cache_directory, data_text, locked, state_directory


def test_the_cache_lies_where_the_environment_says_or_below_the_home_directory() -> None:
    assert cache_directory({"JMSAIO_CACHE": "/a/b"}) == Path("/a/b")
    assert cache_directory({"XDG_CACHE_HOME": "/c"}) == Path("/c/jmsaio")
    assert cache_directory({}) == Path.home() / ".cache" / "jmsaio"
    assert cache_directory({"JMSAIO_CACHE": "~/x"}) == Path.home() / "x"
    assert cache_directory({"JMSAIO_CACHE": "here"}).is_absolute()


def test_the_state_lies_where_the_environment_says_or_below_the_home_directory() -> None:
    assert state_directory({"JMSAIO_STATE": "/a/b"}) == Path("/a/b")
    assert state_directory({"XDG_STATE_HOME": "/c"}) == Path("/c/jmsaio/broker")
    assert state_directory({}) == Path.home() / ".local" / "state" / "jmsaio" / "broker"


def test_data_files_are_package_data() -> None:
    for name in ("broker-pom.xml", "jars-pom.xml", "standalone.conf", "features.conf", "filter.toml"):
        assert data_text(name)


def test_pom_asks_for_the_version_that_is_told() -> None:
    assert f"<version>{BROKER_VERSION}</version>" in data_text("broker-pom.xml")
    assert callable(fetch_broker)


def test_no_registry_host_is_named() -> None:
    for name in ("broker-pom.xml", "jars-pom.xml", "filter.toml"):
        text = data_text(name).replace("http://maven.apache.org/POM/4.0.0", "")
        assert "://" not in text


def test_lock_keeps_another_process_out_and_goes_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lock"
    probe = (
        "import fcntl, sys\n"
        "try:\n    fcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except BlockingIOError:\n    sys.exit(3)\n"
    )

    def other() -> int:
        return subprocess.run([sys.executable, "-c", probe, str(path)], timeout=60, check=False).returncode

    with locked(path):
        assert other() == 3
    assert other() == 0
