"""The real Java client for tests; `tests.conftest` offers all of this to every test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from jmsaio import launcher
from jmsaio.launcher.maven import fetch_jars
from tests.support.java import class_path, compile_java

JAVA_SOURCES = Path(__file__).parents[1] / "java"
#: Fixtures that need a JDK and Maven.
JAVA_FIXTURES = frozenset({"java_classpath", "java_peer_dir", "javac", "maven_jars"})


@pytest.fixture(scope="session")
def maven_jars() -> Callable[..., list[Path]]:
    """``maven_jars("group:artifact:version", ...)``: these jars alone, fetched once."""
    return lambda *coordinates: fetch_jars(coordinates)


@pytest.fixture(scope="session")
def java_classpath() -> str:
    """The class path of the real Java client (Starlight for JMS)."""
    return class_path(*fetch_jars(launcher.JAVA_CLIENT))


@pytest.fixture(scope="session")
def javac(java_classpath: str) -> Callable[..., Path]:
    """``javac(sources, *more_jars)``: the folder with the compiled classes, compiled against the Java client."""

    def run(sources: Sequence[Path], *more_jars: Path) -> Path:
        return compile_java(sources, class_path(java_classpath, *more_jars))

    return run


@pytest.fixture(scope="session")
def java_peer_dir(javac: Callable[..., Path]) -> Path:
    """The compiled classes of all programs directly under ``tests/java/``."""
    return javac(sorted(JAVA_SOURCES.glob("*.java")))
