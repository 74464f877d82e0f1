"""The data source in a session of Spark Connect: ``python tests/spark/connect.py [--register]``.

It needs what ``pip install 'pyspark[connect]'`` brings, pandas among it, which is no dependency of jmsaio: continuous
integration runs it in an environment of its own. Without ``--register`` Spark must find the installed package's source
by its name; with it the client registers the source instead, which an editable installation needs. It starts a broker,
unless the variables of the tests name a running one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import Row, SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession

import jmsaio
from jmsaio.spark import lag, register

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # behind the installed package

from tests.spark.session import patiently  # noqa: E402 - after the path
from tests.support.broker import LaunchedBroker, TestBroker, external_broker, watch_launcher  # noqa: E402 - likewise

#: What is written, and is to be read again.
SCHEMA = (
    "text STRING, JMSType STRING, JMSPriority INT, properties MAP<STRING, STRING>, property_types MAP<STRING, STRING>"
)
ROWS = [(f"Grüße {n:02}", f"t{n % 3}", n % 10, {"n": str(n), "s": "x"}, {"n": "int"}) for n in range(20)]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--register", action="store_true", help="register the source from the client")
    given = parser.parse_args()
    if not given.register and Path(jmsaio.__file__).is_relative_to(ROOT / "jmsaio"):
        raise SystemExit("Spark can't find the source of this checkout by its name: install it, or give --register")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_TESTING", "yes")  # the server takes a free port, and the client asks it which
    with running_broker() as broker:
        spark = SparkSession.builder.remote("local[2]").getOrCreate()
        assert isinstance(spark, ConnectSession), type(spark)
        if given.register:
            register(spark)
        check(spark, broker)
        spark.stop()


@contextlib.contextmanager
def running_broker() -> Iterator[TestBroker]:
    """The broker that the environment names, or one that ends with the block, and with this process at the latest."""
    named = external_broker()
    if named is not None:
        yield named
        return
    watch_launcher()
    with tempfile.TemporaryDirectory(prefix="jmsaio-connect-") as folder:
        broker = LaunchedBroker(Path(folder), memory="512m")
        broker.start()
        try:
            yield broker
        finally:
            broker.kill()


def check(spark: SparkSession, broker: TestBroker) -> None:
    """Write rows to a queue, and read the same, in a batch and as a stream."""
    options = {"url": broker.url, "queue": f"connect-{uuid.uuid4()}"}
    rows = spark.createDataFrame(ROWS, SCHEMA).coalesce(1)  # a task that can be repeated has sent nothing
    patiently(lambda: rows.write.format("jms").mode("append").options(**options).save())
    options["columns"] = ", ".join(rows.columns)
    compare(patiently(spark.read.format("jms").options(**options).load().collect))
    print(f"{len(ROWS)} rows written and read", flush=True)
    stream = spark.readStream.format("jms").options(**options, startingOffsets="earliest").load()
    query = stream.writeStream.format("memory").queryName("streamed").trigger(availableNow=True).start()
    query.awaitTermination()
    assert query.lastProgress is not None
    assert [behind.entries for behind in lag(query.lastProgress).values()] == [0]
    compare(spark.table("streamed").collect())
    print(f"{len(ROWS)} rows streamed", flush=True)


def compare(found: list[Row]) -> None:
    """Refuse rows that are not those that were written, and say which."""
    rows = sorted((tuple(row) for row in found), key=str)
    if rows != ROWS:
        more, fewer = [row for row in rows if row not in ROWS], [row for row in ROWS if row not in rows]
        raise AssertionError(f"{len(rows)} rows instead of {len(ROWS)}: {more} instead of {fewer}")


if __name__ == "__main__":
    main()
