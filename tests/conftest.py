"""Fixtures for every test, and the one place that decides which tests can't run on this machine.

Tests marked ``broker`` (or using `pulsar_broker`, `own_broker`, `secure_broker`, `oauth_broker`) need the real broker,
tests marked ``java`` (or using `java_classpath`, `java_peer_dir`, `javac`, `maven_jars`) the real Java client. Both
come from Maven.
Where a JDK or Maven is missing, or nothing can be downloaded, these tests are deselected and the last lines of the run
say so; with ``CI=true`` that makes the run fail. So does a run that leaves out the files that need the extra ``spark``,
which the default tier lacks.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # tests import their helpers as tests.x, whatever starts pytest

from jmsaio.launcher import LauncherError  # noqa: E402 - after the path
from tests.kit.broker_fixtures import (  # noqa: E402 - after the path
    BROKER_FIXTURES,
    _second_broker,
    connection,
    disturbed,
    each_kind_of_broker,
    issuer,
    name,
    oauth_broker,
    own_broker,
    pulsar_broker,
    secure_broker,
    session,
    small_url,
    url,
)
from tests.kit.java_fixtures import (  # noqa: E402 - after the path
    JAVA_FIXTURES,
    java_classpath,
    java_peer_dir,
    javac,
    maven_jars,
)
from tests.kit.tiers import (  # noqa: E402 - after the path
    has_default_tier,
    is_default,
    is_fast,
    load_profile,
    may_hold_default,
    may_hold_fast,
    on_virtual_time,
)
from tests.kit.virtual_time import VirtualLoop  # noqa: E402 - after the path
from tests.support.broker import not_started, watch_launcher  # noqa: E402 - after the path
from tests.support.prerequisites import (  # noqa: E402 - after the path
    MISSING,
    WITHOUT_SPARK,
    deselect,
    lacking_for_spark,
    lacks_spark,
    missing_is_a_failure,
)
from tests.support.watcher import join, journal  # noqa: E402 - after the path
from tests.support.workers import (  # noqa: E402 - after the path
    WORKERS,
    arrange,
    distribute,
    is_worker,
    scheduler,
)

#: Seconds for a test that may have to start a broker first: 8 s on a quiet machine, a minute on a crowded one.
SLOW_LIMIT = 300
#: For every JVM of the tests: a broker that lives for a minute costs half the CPU time when nothing is optimized.
SHORT_LIVED_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: Why brokers could not be started.
REPORTED = pytest.StashKey[set[LauncherError]]()
#: Fixtures for every test, besides those below.
__all__ = [
    "_second_broker",
    "connection",
    "disturbed",
    "issuer",
    "java_classpath",
    "java_peer_dir",
    "javac",
    "maven_jars",
    "name",
    "oauth_broker",
    "own_broker",
    "pulsar_broker",
    "secure_broker",
    "session",
    "small_url",
    "url",
]

os.environ.setdefault("JDK_JAVA_OPTIONS", SHORT_LIVED_JAVA)
# Without bytecode each of the many processes would compile everything, and rewrite all tests, for itself.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
watch_launcher()


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """jmsaio runs on asyncio; tests on the embedded broker on virtual time."""
    return "asyncio", {"loop_factory": VirtualLoop if on_virtual_time(request.node) else None}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run every test, not only the default tier; takes long")
    parser.addoption("--wire", action="store_true", help="run over wire what runs on each kind of broker")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """A run of many tests has several processes, since most tests wait; ``-n0`` has one."""
    distribute(config, has_default_tier(config))


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
    node.workerinput["default"] = has_default_tier(node.config)


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts jobs in the background so, and the processes that tests interrupt would ignore it, too.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    load_profile(few=has_default_tier(config) or config.option.markexpr == "fast")
    if is_worker(config):
        join(Path(config.workerinput["journal"]))  # type: ignore[attr-defined] # pytest-xdist's attribute


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Note what a process for tests has left out."""
    output = getattr(node, "workeroutput", {})
    missing = output.get("missing")
    if missing is not None:
        node.config.stash[MISSING] = tuple(missing)
    if output.get("without_spark"):
        node.config.stash[WITHOUT_SPARK] = output["without_spark"]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files that need Spark where it is not installed, and those without a test of the run's tier.

    With ``-m fast``, files and folders that the command line names are collected whatever they hold.
    """
    if has_default_tier(config) and not may_hold_default(collection_path):
        return True
    if config.option.markexpr == "fast" and not may_hold_fast(collection_path):
        places = (config.invocation_params.dir / name.partition("::")[0] for name in config.args)
        named = [place for place in places if not may_hold_fast(place)]
        asked = any(collection_path.is_relative_to(place) or place.is_relative_to(collection_path) for place in named)
        return None if asked else True
    if lacks_spark(collection_path):
        if not has_default_tier(config):
            config.stash.setdefault(WITHOUT_SPARK, []).append(collection_path.name)
        return True
    return None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give each test the marks of the fixtures that it uses, so that ``-m`` sees them, and time to start a broker."""
    fixtures = set(getattr(item, "fixturenames", ()))
    if fixtures & BROKER_FIXTURES and item.get_closest_marker("broker") is None:
        item.add_marker("broker")
    if fixtures & JAVA_FIXTURES and item.get_closest_marker("java") is None:
        item.add_marker("java")
    if "spark" in fixtures:
        half = "spark jobs" if item.path.parent.name == "jobs" else "spark"  # a session each, side by side
        item.add_marker(pytest.mark.xdist_group(half))
    if "own_broker" in fixtures:
        item.add_marker("own_broker")
        item.add_marker(pytest.mark.xdist_group("own broker"))
    if fixtures & (BROKER_FIXTURES | JAVA_FIXTURES | {"spark"}) and item.get_closest_marker("timeout") is None:
        item.add_marker(pytest.mark.timeout(SLOW_LIMIT))
    if is_fast(item):
        item.add_marker("fast")
    if is_default(item):
        item.add_marker("default")
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        item.add_marker("property")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what the run's tier lacks and what can't run here, and choose the order."""
    if has_default_tier(config):
        items[:] = [item for item in items if item.get_closest_marker("default") is not None]
    deselect(session, items)
    if is_worker(config):
        arrange(config, items)


def pytest_collection_finish() -> None:
    """Leave out of each garbage collection what modules and thousands of collected tests consist of: it all stays."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """With ``CI=true`` a run that left tests out has failed."""
    missing = session.config.stash.get(MISSING, None)
    without_spark = session.config.stash.get(WITHOUT_SPARK, [])
    if is_worker(session.config):
        output = session.config.workeroutput  # type: ignore[attr-defined] # pytest-xdist's attribute
        output["missing"], output["without_spark"] = missing, without_spark
    elif (missing is not None or without_spark) and missing_is_a_failure() and exitstatus in (0, 5):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in one line each what is missing and what was not tested."""
    lines = []
    missing = config.stash.get(MISSING, None)
    if missing is not None:
        sentence, count = missing
        lines.append(f"{count} tests with the real Pulsar broker and the Java client: {sentence}")
    without_spark = config.stash.get(WITHOUT_SPARK, [])
    if without_spark:
        sentence = f"no {' and '.join(lacking_for_spark())}; run pip install '.[test,check,spark]'"
        lines.append(f"{len(without_spark)} files of tests with Spark: {sentence}")
    if has_default_tier(config):
        terminalreporter.write_line("The default tier: `pytest --full` runs every test.")
    verdict = "; this is a failure because CI=true" if missing_is_a_failure() else ""
    for line in lines:
        terminalreporter.write_line(
            f"NOT TESTED: {line}{verdict}", red=missing_is_a_failure(), yellow=not missing_is_a_failure()
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    each_kind_of_broker(metafunc)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the broker's log with a test that failed.

    A broker that can't be started fails the first test that needs it: the others of this process are left out.
    """
    report = yield
    error = call.excinfo.value if call.excinfo is not None and call.when == "setup" else None
    if isinstance(error, LauncherError):
        reported = item.config.stash.setdefault(REPORTED, set())
        if error in reported:
            report.outcome, report.longrepr = "skipped", (str(item.path), 0, not_started(error.reason))
        reported.add(error)
    if report.failed:
        for name in sorted(BROKER_FIXTURES & set(getattr(item, "funcargs", ()))):
            report.sections.append((f"log of {name}", item.funcargs[name].log(20)))  # type: ignore[attr-defined] # checked
    return report
