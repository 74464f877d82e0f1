"""Fixtures for every test, and the one place that decides which tests can't run on this machine.

Tests marked ``broker`` (or using `pulsar_broker`, `own_broker`) need the real broker, tests marked ``java`` (or using
`java_classpath`, `java_peer_dir`, `javac`, `maven_jars`) the real Java client. Both come from Maven. Where a JDK or
Maven is missing, or nothing can be downloaded, these tests are deselected and the last lines of the run say so; with
``CI=true`` that makes the run fail.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # tests import their helpers as tests.x, whatever starts pytest

from jmsaio import launcher  # noqa: E402 - after the path
from jmsaio.launcher.maven import fetch_jars  # noqa: E402 - after the path
from tests.kit import virtual_time  # noqa: E402 - after the path
from tests.kit.broker_fixtures import (  # noqa: E402 - after the path
    BROKER_FIXTURES,
    _second_broker,
    connection,
    each_kind_of_broker,
    name,
    own_broker,
    pulsar_broker,
    session,
    small_namespace,
    url,
)
from tests.kit.tiers import is_fast, load_profile, on_virtual_time  # noqa: E402 - after the path
from tests.kit.virtual_time import VirtualLoop  # noqa: E402 - after the path
from tests.support.broker import external_broker, watch_launcher  # noqa: E402 - after the path
from tests.support.java import class_path, compile_java  # noqa: E402 - after the path
from tests.support.watcher import join, journal  # noqa: E402 - after the path
from tests.support.workers import (  # noqa: E402 - after the path
    WORKERS,
    arrange,
    distribute,
    is_worker,
    once,
    scheduler,
    shared_folder,
)

JAVA_SOURCES = Path(__file__).parent / "java"
JAVA_FIXTURES = frozenset({"java_classpath", "java_peer_dir", "javac", "maven_jars"})
#: Seconds for a test that may have to start a broker first: 8 s on a quiet machine, a minute on a crowded one.
SLOW_LIMIT = 300
#: For every JVM of the tests: a broker that lives for a minute costs half the CPU time when nothing is optimized.
SHORT_LIVED_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_MISSING = pytest.StashKey[tuple[str, int]]()

#: Fixtures for every test, besides those below.
__all__ = ["_second_broker", "connection", "name", "own_broker", "pulsar_broker", "session", "small_namespace", "url"]

os.environ.setdefault("JDK_JAVA_OPTIONS", SHORT_LIVED_JAVA)
watch_launcher()
virtual_time.install()


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """jmsaio runs on asyncio; tests on the embedded broker on virtual time."""
    return "asyncio", {"loop_factory": VirtualLoop if on_virtual_time(request.node) else None}


# --- several processes ---------------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """A run of many tests has several processes, since most tests wait; ``-n0`` has one."""
    distribute(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """``-n auto``: as many as without the option, instead of one for each processor."""
    return WORKERS


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests of a group run one after another, unless ``--dist`` names another way."""
    return scheduler(config, log) if config.option.dist == "load" else None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A process for tests takes part in the run that started it: what it leaves running ends with that."""
    node.workerinput["journal"] = str(journal())


def pytest_configure(config: pytest.Config) -> None:
    load_profile(fast=config.option.markexpr == "fast")
    if is_worker(config):
        join(Path(config.workerinput["journal"]))  # type: ignore[attr-defined] # pytest-xdist's attribute


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Note what a process for tests has left out."""
    missing = getattr(node, "workeroutput", {}).get("missing")
    if missing is not None:
        node.config.stash[_MISSING] = tuple(missing)


# --- which tests can run -------------------------------------------------------------------------------------------


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give each test the marks of the fixtures that it uses, so that ``-m`` sees them, and time to start a broker."""
    fixtures = set(getattr(item, "fixturenames", ()))
    if fixtures & BROKER_FIXTURES and item.get_closest_marker("broker") is None:
        item.add_marker("broker")
    if fixtures & JAVA_FIXTURES and item.get_closest_marker("java") is None:
        item.add_marker("java")
    if "own_broker" in fixtures:
        item.add_marker("own_broker")
        item.add_marker(pytest.mark.xdist_group("own broker"))
    if fixtures & (BROKER_FIXTURES | JAVA_FIXTURES) and item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(SLOW_LIMIT))
    if is_fast(item):
        item.add_marker("fast")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what can't run here, and choose the order."""
    _deselect(session, config, items)
    if is_worker(config):
        arrange(config, items)


def _deselect(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what can't run here; fetch what the rest needs, outside of any test's time limit."""
    java = [item for item in items if item.get_closest_marker("java") is not None or _launches(item)]
    others = [item for item in items if item.get_closest_marker("broker") is not None and item not in java]
    if (not java and not others) or config.option.collectonly:
        return
    if external_broker() is None:
        java += others
    if not java:
        return
    lacking = launcher.missing("javac", "mvn") or _lacking(session)
    if lacking:
        gone = set(java)
        config.hook.pytest_deselected(items=java)
        items[:] = [item for item in items if item not in gone]
        config.stash[_MISSING] = ("; ".join(lacking), len(java))


def _launches(item: pytest.Item) -> bool:
    """Whether a test has a broker started even if the environment names one that runs."""
    return "own_broker" in getattr(item, "fixturenames", ())


def _lacking(session: pytest.Session) -> list[str]:
    """What can't be fetched: the same for all processes of a run, since all must select the same tests."""
    if not is_worker(session.config):
        return _unfetched(session)
    return list(once(shared_folder(session.config), "fetched", lambda: _unfetched(session)))


def _unfetched(session: pytest.Session) -> list[str]:
    """Fetch the broker and the Java client; the reason if that fails."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")

    def progress(line: str) -> None:
        if reporter is not None:
            reporter.write_line(line)

    try:
        launcher.fetch(progress)
        fetch_jars(launcher.JAVA_CLIENT, progress)
    except launcher.LauncherError as error:
        return [error.reason]
    return []


def _ci() -> bool:
    """Whether an incomplete run counts as a failure."""
    return os.environ.get("CI", "").lower() == "true"


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With ``CI=true`` a run that left tests out has failed."""
    missing = session.config.stash.get(_MISSING, None)
    if is_worker(session.config):
        session.config.workeroutput["missing"] = missing  # type: ignore[attr-defined] # pytest-xdist's attribute
    elif missing is not None and _ci() and exitstatus in (0, 5):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in one line what is missing and what was not tested."""
    missing = config.stash.get(_MISSING, None)
    if missing is not None:
        sentence, count = missing
        verdict = "; this is a failure because CI=true" if _ci() else ""
        terminalreporter.write_line(
            f"NOT TESTED: {count} tests with the real Pulsar broker and the Java client: {sentence}{verdict}",
            red=_ci(),
            yellow=not _ci(),
        )


# --- the real broker -----------------------------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    each_kind_of_broker(metafunc)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the broker's log with a test that failed."""
    report = yield
    if report.failed:
        for name in sorted(BROKER_FIXTURES & set(getattr(item, "funcargs", ()))):
            report.sections.append((f"log of {name}", item.funcargs[name].log(20)))  # type: ignore[attr-defined] # checked
    return report


# --- the real Java client ------------------------------------------------------------------------------------------


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
