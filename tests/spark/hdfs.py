"""HDFS that the test run starts itself: a NameNode and a DataNode in one process of Java."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from jmsaio.launcher import tools
from jmsaio.launcher.maven import fetch_jars
from tests.support.java import class_path

_VERSION: Final = "3.4.2"
#: Hadoop's cluster for tests, and what it needs.
HADOOP: Final = (
    *(f"org.apache.hadoop:hadoop-client-{name}:{_VERSION}" for name in ("minicluster", "api", "runtime")),
    "org.slf4j:slf4j-api:1.7.36",
    "commons-logging:commons-logging:1.3.0",
)


@contextmanager
def start_hdfs(folder: Path) -> Iterator[str]:
    """Start HDFS, which stores its blocks in a folder, and stop it at the end; its URL."""
    program = Path(__file__).with_name("Hdfs.java")
    command = [str(tools.find("java")), "-Xmx512m", "-cp", class_path(*fetch_jars(HADOOP)), str(program), str(folder)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            assert url.startswith("hdfs://"), "HDFS does not start"
            yield url
        finally:
            server.kill()
