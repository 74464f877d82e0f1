"""Checks that this machine and Spark's workers have what the data source needs, and reach the broker."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs
from pyspark.sql import SparkSession, functions as f

from jmsaio.launcher.errors import ToolError
from jmsaio.launcher.tools import require
from jmsaio.model.version import __version__
from jmsaio.spark.jobs.failures import reason_of
from jmsaio.spark.options.parse import Use, parse_options

#: Minimum versions of packages.
_OLDEST: Final[Mapping[str, tuple[int, ...]]] = {"pyspark": (4, 3), "pyarrow": (18,)}
_INSTALL: Final = "pip install 'jmsaio[spark]'"


@attrs.frozen
class Finding:
    """Result of one check; ``advice`` has the problem and its remedy in one sentence, "" without a problem."""

    what: str
    found: str
    advice: str = ""


def check_driver() -> list[Finding]:
    packages = json.loads(_probe({}, 0.0)(0))["packages"]
    return [_check_java(), *(check_package(name, packages[name], "here") for name in _OLDEST)]


def check_session(session: SparkSession, options: Mapping[str, str], timeout: float = 10.0) -> list[Finding]:
    """Check a session's Java, and by a job of one row a worker's interpreter, packages and connection to the broker."""
    if options:
        parse_options(options, Use.WRITE)
    (java,) = session.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.version')").collect()
    findings = [Finding("java of Spark", str(java[0]))]
    probe = f.udf(_probe(dict(options), timeout), "string", useArrow=False)  # without Arrow, which can be missing
    try:
        (report,) = session.range(0, 1, 1, 1).select(probe("id")).collect()
    except Exception as error:  # anything that keeps a worker from starting
        name, wanted = os.environ.get("PYSPARK_PYTHON", "python3"), f"{sys.version_info.major}.{sys.version_info.minor}"
        advice = (
            f"a worker of Python did not start ({reason_of(error):.300}): set PYSPARK_PYTHON, "
            f"now {name}, to an interpreter of version {wanted} with jmsaio[spark]"
        )
        return [*findings, Finding("worker", "none", advice)]
    return findings + check_report(json.loads(report[0]))


def check_report(report: Mapping[str, Any]) -> list[Finding]:
    """Check a worker's report; its ``broker`` is the connection error, "" without one, or None if it was not tried."""
    packages, python, error = report["packages"], report["python"], report["broker"]
    findings = [Finding("worker", f"{python}, Python {report['version']}")]
    findings += [check_package(name, packages[name], "on the worker") for name in _OLDEST]
    found, advice = packages["jmsaio"], ""
    if found is None:
        advice = f"jmsaio is not installed for {python}: {_INSTALL} there, or set PYSPARK_PYTHON"
    elif found != __version__:
        advice = f"the worker has jmsaio {found}, the driver {__version__}: install the same version"
    findings.append(Finding("jmsaio on the worker", found or "missing", advice))
    if error:
        advice = f"a worker can't reach the broker: {error}; check the URL and the network between them"
        findings.append(Finding("broker from the worker", "out of reach", advice))
    elif error is not None:
        findings.append(Finding("broker from the worker", "reached"))
    return findings


def check_package(name: str, found: str | None, where: str) -> Finding:
    oldest, advice = ".".join(map(str, _OLDEST[name])), ""
    if found is None:
        advice = f"{name} is not installed {where}: run {_INSTALL} there"
    elif tuple(map(int, re.findall("[0-9]+", found))) < _OLDEST[name]:  # (4, 3, 1) for 4.3.dev1
        advice = f"{name} {found} {where} is older than {oldest}: run {_INSTALL} there"
    return Finding(f"{name} {where}", found or "missing", advice)


def _check_java() -> Finding:
    """Check the Java that Spark runs: the one of JAVA_HOME, without an alternative, or else on the path."""
    home = os.environ.get("JAVA_HOME")
    if home and not os.access(os.path.join(home, "bin", "java"), os.X_OK):
        return Finding("java", f"JAVA_HOME={home}", f"JAVA_HOME={home} holds no bin/java: set it to a JDK 17 or later")
    try:
        return Finding("java", str(require("java")))  # Spark needs the same version as the launcher
    except ToolError as error:
        return Finding("java", "missing or too old", f"{error.reason}; JAVA_HOME names the one that Spark runs")


def _probe(options: dict[str, str], timeout: float) -> Callable[[int], str]:
    """Return a function that reports as ``check_report`` reads it, sent to the worker whole: jmsaio can be missing."""

    def probe(_: int) -> str:
        import asyncio
        import json
        import platform
        import sys
        from importlib.metadata import PackageNotFoundError, version

        def find(name: str) -> str | None:
            if name == "pyspark":  # a cluster has Spark's own, without package metadata
                return str(__import__(name).__version__)
            try:
                return version(name)
            except PackageNotFoundError:
                return None

        async def connect() -> str:
            from jmsaio.spark.options.parse import Use, parse_options
            from jmsaio.spark.worker import connected_by

            try:
                async with asyncio.timeout(timeout), connected_by(parse_options(options, Use.WRITE)):
                    pass
            except TimeoutError:
                return f"no answer within {timeout:g} s"
            except Exception as error:
                return str(error) or type(error).__name__
            return ""

        packages = {name: find(name) for name in ("jmsaio", "pyspark", "pyarrow")}
        broker = asyncio.run(connect()) if options and packages["jmsaio"] is not None else None
        return json.dumps({
            "python": sys.executable, "version": platform.python_version(), "packages": packages, "broker": broker,
        })  # fmt: skip

    return probe
