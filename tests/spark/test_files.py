"""Spark's distributed files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark import SparkFiles

from jmsaio.errors import ConfigurationError
from jmsaio.spark.files import configuration_of
from jmsaio.spark.options.parse import Use, parse_options

OPTIONS = {
    "url": "pulsar://broker:6650", "queue": "q", "authPlugin": "token", "authParams": "file:jmsaio-test-token",
}  # fmt: skip


def test_a_secret_is_found_among_the_files_that_spark_distributes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = parse_options(OPTIONS, Use.READ)
    monkeypatch.setattr(SparkFiles, "_root_directory", None)
    with pytest.raises(ConfigurationError, match="jmsaio-test-token"):
        configuration_of(options)
    monkeypatch.setattr(SparkFiles, "_root_directory", str(tmp_path))
    for secret in ("first", "second"):  # a secret may be replaced
        (tmp_path / "jmsaio-test-token").write_text(secret + "\n")
        assert configuration_of(options).auth_params == secret


def test_a_secret_is_found_where_a_stream_is_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process is told of a folder of its own, below the one with the files, which does not exist."""
    (tmp_path / "jmsaio-test-token").write_text("secret\n")
    monkeypatch.setattr(SparkFiles, "_root_directory", str(tmp_path / "streaming_job"))
    assert configuration_of(parse_options(OPTIONS, Use.READ_STREAM)).auth_params == "secret"
