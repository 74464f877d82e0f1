"""Which tests can run on this machine: those that need what it lacks are left out, and the run says so."""

from __future__ import annotations

import importlib.util
import os
import re
from functools import cache
from pathlib import Path

import pytest

from jmsaio import launcher
from jmsaio.launcher.maven import fetch_jars
from tests.support.broker import external_broker
from tests.support.workers import is_worker, once, shared_folder

#: What the machine lacks, and how many tests were left out therefore.
MISSING = pytest.StashKey[tuple[str, int]]()
#: Test files that were left out because they need the extra `spark`.
WITHOUT_SPARK = pytest.StashKey[list[str]]()
#: Packages of the extra `spark`, and how a test file that needs them names them, or modules and helpers that do.
SPARK_PACKAGES = ("pyarrow", "pyspark")
_MODULES = "|".join((*SPARK_PACKAGES, r"jmsaio\.spark\.arrow", r"tests\.spark(?!\.seam\b|\.planning\.ledgers\b)"))
_SPARK = re.compile(rf"^\s*(?:import|from) (?:{_MODULES})\b", re.MULTILINE)


def deselect(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Deselect what can't run here; fetch what the rest needs, outside of any test's time limit."""
    config = session.config
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
        config.stash[MISSING] = ("; ".join(lacking), len(java))


def _launches(item: pytest.Item) -> bool:
    """Whether a test has a broker started even if the environment names one that runs."""
    return "own_broker" in getattr(item, "fixturenames", ())


def _lacking(session: pytest.Session) -> list[str]:
    """What can't be fetched: the same for all processes of a run, since all must select the same tests."""
    if not is_worker(session.config):
        return _unfetched(session)
    return list(once(shared_folder(session.config), "fetched", lambda: _unfetched(session)))


def _unfetched(session: pytest.Session) -> list[str]:
    """Fetch the broker, the Java client and, with Spark, Hadoop; the reason if that fails."""
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


@cache
def lacking_for_spark() -> tuple[str, ...]:
    """The packages of the extra `spark` that are not installed."""
    return tuple(name for name in SPARK_PACKAGES if importlib.util.find_spec(name) is None)


def lacks_spark(path: Path) -> bool:
    """Whether a test file can't be imported here, because it needs packages of the extra `spark`."""
    if path.suffix != ".py" or "spark" not in str(path) or not lacking_for_spark():
        return False
    return _SPARK.search(path.read_text(encoding="utf-8")) is not None


def missing_is_a_failure() -> bool:
    """Whether an incomplete run counts as a failure."""
    return os.environ.get("CI", "").lower() == "true"
