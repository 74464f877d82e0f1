"""The check of Java, packages, workers and the way to the broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from jmsaio.errors import ConfigurationError
from jmsaio.model.version import __version__
from jmsaio.spark.jobs.check import check_driver, check_package, check_report, check_session

REPORT: dict[str, Any] = {
    "python": "/opt/python", "version": "3.11.7", "broker": "",
    "packages": {"jmsaio": __version__, "pyspark": "4.3.0", "pyarrow": "18.0.0"},
}  # fmt: skip


def test_a_worker_with_everything_needs_nothing() -> None:
    findings = check_report(REPORT)
    assert [each.advice for each in findings] == [""] * 5
    assert findings[0].found == "/opt/python, Python 3.11.7"
    assert findings[-1].found == "reached"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"broker": "no answer"}, "a worker can't reach the broker: no answer; check the URL"),
        (
            {"packages": {**REPORT["packages"], "pyarrow": None}},
            "pyarrow is not installed on the worker: run pip install",
        ),
        ({"packages": {**REPORT["packages"], "pyarrow": "17.9"}}, "pyarrow 17.9 on the worker is older than 18"),
        (
            {"packages": {**REPORT["packages"], "jmsaio": None}, "broker": None},
            "jmsaio is not installed for /opt",
        ),
        ({"packages": {**REPORT["packages"], "jmsaio": "0.0.1"}}, "the worker has jmsaio 0.0.1, the driver"),
    ],
)
def test_each_thing_that_is_missing_has_one_sentence(change: dict[str, Any], words: str) -> None:
    (advice,) = [each.advice for each in check_report({**REPORT, **change}) if each.advice]
    assert words in advice


@pytest.mark.parametrize(
    ("version", "is_wrong"), [("4.3.0", False), ("4.10.dev1", False), ("4.2.9", True), ("x", True)]
)
def test_versions_are_compared_as_numbers(version: str, is_wrong: bool) -> None:
    assert bool(check_package("pyspark", version, "here").advice) is is_wrong


def test_java_is_looked_for_where_spark_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "holds no bin/java" in check_driver()[0].advice
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    for version, advice in (("17.0.15", ""), ("1.8.0_392", "Java 17 or newer is needed, but")):
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"'\n")
        java.chmod(0o755)
        found = check_driver()[0]
        assert found.found == ("missing or too old" if advice else str(java))
        assert found.advice.startswith(advice) and bool(found.advice) is bool(advice)
    assert "is version 8" in found.advice
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "")
    assert check_driver()[0].advice.startswith(
        "Java 17 or newer is needed, but the command 'java' was not found; install it"
    )
    assert [each.what for each in check_driver()[1:]] == ["pyspark here", "pyarrow here"]


def test_what_the_source_refuses_is_refused_before_a_worker_is_asked(spark: SparkSession) -> None:
    with pytest.raises(ConfigurationError, match="a secret does not belong in an option"):
        check_session(spark, {"url": "pulsar://h", "authPlugin": "token", "authParams": "token:x"})


def test_a_worker_is_asked_and_tells_why_the_broker_is_out_of_reach(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It finds a secret among the files that Spark distributes."""
    (tmp_path / "jmsaio-check-token").write_text("x")
    spark.sparkContext.addFile(str(tmp_path / "jmsaio-check-token"))
    options = {"url": "pulsar://127.0.0.1:1", "authPlugin": "token", "authParams": "file:jmsaio-check-token"}
    findings = check_session(spark, options, 2.0)
    assert [each.what for each in findings if each.advice] == ["broker from the worker"]
    assert "no answer within 2 s" in findings[-1].advice or "127.0.0.1:1" in findings[-1].advice

    def fail(*arguments: object) -> DataFrame:
        raise RuntimeError('Cannot run program "python9"\n')

    monkeypatch.setattr(spark, "range", fail)
    found = check_session(spark, {})
    assert [each.what for each in found] == ["java of Spark", "worker"]
    assert "Cannot run program" in found[1].advice and "set PYSPARK_PYTHON" in found[1].advice
