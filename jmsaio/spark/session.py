"""A Spark session for a command: a new one on this machine, or the existing one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final, cast

from pyspark.sql import SparkSession

import jmsaio.spark

#: Master of a session created here: two tasks at a time on this machine.
MASTER: Final = "local[2]"

#: Set by ``spark-submit`` in the process of the driver.
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
_PYTHON: Final = "PYSPARK_PYTHON"
_OWN: Final[Mapping[str, str]] = {
    "spark.log.level": "OFF",  # errors are reported as a sentence, not as a log of the JVM
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOCAL: Final[Mapping[str, str]] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
}


@contextmanager
def open_session(master: str = MASTER, settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """Return a session with ``format("jms")`` registered; stop it at the end if it was created here.

    An active session, or the one that ``spark-submit`` configured, is used unchanged. The workers of a new one run this
    interpreter unless PYSPARK_PYTHON names another.
    """
    session = SparkSession.getActiveSession()
    if session is not None:
        jmsaio.spark.register(session)
        yield session
        return
    with ExitStack() as stack:
        if _PYTHON not in os.environ:
            os.environ[_PYTHON] = sys.executable
            stack.callback(os.environ.pop, _PYTHON)
        session = _make(master, settings or {})
        stack.callback(session.stop)
        jmsaio.spark.register(session)
        yield session


def _make(master: str, settings: Mapping[str, str]) -> SparkSession:
    if _SUBMITTED in os.environ:
        return SparkSession.builder.getOrCreate()
    chosen = {**_OWN, **(_LOCAL if master.startswith("local") else {}), **settings}
    return SparkSession.builder.master(master).appName("jmsaio").config(map=dict(chosen)).getOrCreate()


def located(folder: str, *names: str) -> str:
    """Return the URL of a folder or of a file there: Spark's default file system need not be this machine's."""
    return "/".join((folder if "://" in folder else f"file:{folder}", *names))


def hadoop_path(session: SparkSession, url: str) -> tuple[Any, Any]:
    """Return the file system of a URL, with the session's settings, and the path there: objects of the JVM."""
    context: Any = session.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(url)
    return path.getFileSystem(context._jsc.hadoopConfiguration()), path


def read_text(session: SparkSession, url: str) -> str | None:
    system, path = hadoop_path(session, url)
    if not system.exists(path):
        return None
    stream, context = system.open(path), cast("Any", session.sparkContext)
    try:
        return str(context._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()
