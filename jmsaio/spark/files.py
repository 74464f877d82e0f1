"""Spark's distributed files, where secrets that an option names may lie."""

from __future__ import annotations

from pathlib import Path

from pyspark import SparkFiles

from jmsaio.config import Configuration
from jmsaio.spark.options.parse import SourceOptions


def configuration_of(options: SourceOptions) -> Configuration:
    """The configuration with the secrets as they are now, found in Spark's distributed files (``--files``), too.

    Raises:
        ConfigurationError: a secret that is not there.
    """
    root = SparkFiles._root_directory  # getRootDirectory() raises where a process of Spark has none yet
    if root is None:
        return options.configuration()
    folder = Path(root).absolute()
    return options.configuration([folder, folder.parent])  # who plans a stream is told of a folder below that of files
