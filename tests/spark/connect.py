"""The data source in a Spark Connect session: ``python -m tests.spark.connect``.

It needs ``pip install 'pyspark[connect]'`` and a running broker, named by the variables of the tests. Spark finds the
source by its name; with ``--register`` the client registers it instead. pandas, which Spark Connect needs, is no
dependency of jmsaio, so no test runs this.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import uuid

from pyspark.sql import SparkSession

from jmsaio.spark import lag, register
from tests.spark.session import patiently
from tests.support.broker import SERVICE_URL, WEB_URL, external_broker

COUNT = 20


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--register", action="store_true", help="register the source from the client")
    given = parser.parse_args()
    broker = external_broker()
    if broker is None:
        raise SystemExit(f"name a running broker with {SERVICE_URL} and {WEB_URL} (jmsaio broker start)")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    if given.register:
        register(spark)
    options = {"url": broker.url, "queue": f"connect-{uuid.uuid4()}"}
    texts = spark.range(0, COUNT, 1, 2).selectExpr("cast(id AS string) AS text")
    patiently(lambda: texts.write.format("jms").mode("append").options(**options).save())
    rows = patiently(spark.read.format("jms").options(**options, columns="text").load().collect)
    assert sorted(int(row.text) for row in rows) == list(range(COUNT))
    print(f"{COUNT} rows written and read", flush=True)
    stream = spark.readStream.format("jms").options(**options, startingOffsets="earliest", subscription="s").load()
    with tempfile.TemporaryDirectory() as folder:
        writer = stream.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
        query = writer.trigger(availableNow=True).start(f"{folder}/files")
        query.awaitTermination()
        assert query.lastProgress is not None
        print("lag:", lag(query.lastProgress))
        assert spark.read.parquet(f"{folder}/files").count() == COUNT
    print(f"{COUNT} rows streamed", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
