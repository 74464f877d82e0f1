"""Spark sessions of processes that tests start: a second one in the process of the tests would disturb theirs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import jmsaio.spark

ROOT = Path(__file__).parents[2]
T = TypeVar("T")


def environment(*first: Path, **more: str) -> dict[str, str]:
    """What such a process and its workers need to import what lies here.

    Args:
        first: folders that are looked at before those of this checkout.
        more: other variables.
    """
    paths = [*map(str, first), str(ROOT), os.environ.get("PYTHONPATH", "")]
    found = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, **more}
    return {**found, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def patiently(work: Callable[[], T]) -> T:
    """Do it again where Spark did not wait long enough for one of its Python processes: it waits for 10 s at most."""
    for _ in range(2):
        try:
            return work()
        except PySparkException as error:
            if "failed to connect back" not in str(error):
                raise
    return work()


def start(master: str = "local[2,3]", settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session that knows the source ``jms``."""
    chosen: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        **(settings or {}),
    }
    session = SparkSession.builder.master(master).appName("tests").config(map=chosen).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    jmsaio.spark.register(session)
    return session
