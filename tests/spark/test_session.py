"""Sessions for commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

import jmsaio.spark
from jmsaio.spark import session as sessions
from jmsaio.spark.session import hadoop_path, located, open_session, read_text


def test_a_session_that_is_there_is_used_as_it_is_and_goes_on(spark: SparkSession) -> None:
    with open_session("local[7]", {"spark.sql.shuffle.partitions": "5"}) as session:
        assert session is spark
        assert session.conf.get("spark.sql.shuffle.partitions") == "2"
    assert spark.range(3).count() == 3


def test_a_session_of_our_own_is_stopped_and_runs_this_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    def make(master: str, settings: Mapping[str, str]) -> object:
        made.append((master, settings, os.environ["PYSPARK_PYTHON"]))
        return SimpleNamespace(stop=lambda: made.append("stopped"))

    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(sessions, "_make", make)
    monkeypatch.setattr(jmsaio.spark, "register", lambda session: made.append("registered"))
    with pytest.raises(ValueError, match="inside"), open_session(settings={"a": "b"}):
        raise ValueError("inside")
    assert made == [("local[2]", {"a": "b"}, sys.executable), "registered", "stopped"]
    assert "PYSPARK_PYTHON" not in os.environ


def test_what_spark_submit_configured_is_not_changed(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    session = sessions._make("local[7]", {"spark.sql.shuffle.partitions": "5"})
    assert session.sparkContext is spark.sparkContext
    assert session.conf.get("spark.sql.shuffle.partitions") == "2"


def test_files_are_read_where_spark_finds_them(spark: SparkSession, tmp_path: Path) -> None:
    """A path is on this machine, whatever the default file system of Spark is."""
    assert located("/a b", "c") == "file:/a b/c"
    assert located("s3a://bucket/a") == "s3a://bucket/a"
    (tmp_path / "x").write_text("Grüße", encoding="utf-8")
    assert read_text(spark, located(str(tmp_path), "x")) == "Grüße"
    assert read_text(spark, located(str(tmp_path), "y")) is None
    assert str(hadoop_path(spark, located(str(tmp_path)))[1]) == f"file:{tmp_path}"
