"""Spark's distributed files, which can hold secrets named by options."""

from __future__ import annotations

from pathlib import Path

from pyspark import SparkFiles

from jmsaio.config import Configuration
from jmsaio.spark.options.parse import SourceOptions


def configuration_of(options: SourceOptions) -> Configuration:
    """Return the configuration with the current secrets, also from Spark's distributed files (``--files``).

    Raises:
        ConfigurationError: a secret does not exist.
    """
    root = SparkFiles._root_directory  # getRootDirectory() raises if a Spark process has none yet
    if root is None:
        return options.configuration()
    folder = Path(root).absolute()
    return options.configuration([folder, folder.parent])  # a stream's planner gets a subfolder of the files' folder
