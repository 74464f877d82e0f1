"""JMS destinations as Spark tables and streams, through PySpark's data source API.

Importing this package loads neither pyspark nor pyarrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from jmsaio.spark.model.dedup import with_dedup
from jmsaio.spark.planning.plan import Behind, shown_offset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Behind", "lag", "register", "with_dedup"]


def register(spark: SparkSession) -> None:
    """Register the data source ``jms`` with a session.

    An installed package needs no such call; a cluster that ships the package as files does.

    Args:
        spark: the session; it can be a Spark Connect session.

    Raises:
        ImportError: pyspark or pyarrow is not installed: ``pip install 'jmsaio[spark]'``.
    """
    from jmsaio.spark.source import JmsSource

    import_module("pyarrow")  # the data source itself loads it when it reads or writes
    spark.dataSource.register(JmsSource)


def lag(progress: Mapping[str, Any]) -> dict[str, Behind]:
    """Return the backlog after a stream's newest batch, by the full name of the topic or partition.

    Args:
        progress: of a query: ``query.lastProgress``, or one of ``query.recentProgress``. Sources of other kinds are
            ignored.
    """
    found: dict[str, Behind] = {}
    for source in progress["sources"]:
        shown = shown_offset(source).get("behind", {})
        found |= {topic: Behind(one["entries"], one["bytes"]) for topic, one in shown.items()}
    return found
