"""A driver for ``spark-submit`` that uses and betrays a secret, if it can: ``canary.py URL FOLDER``.

It runs on the installed package alone, whose data source Spark finds by its name, and leaves what Spark and the source
write behind in the folder, for the search in ``test_canary``.
"""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import jmsaio
from jmsaio.cli import main as command
from jmsaio.spark.options.parse import Use, parse_options

sys.path.append(str(Path(__file__).parents[2]))  # behind the installed package

from tests.spark.session import patiently

SECRET = {"authPlugin": "token", "authParams": "file:canary.txt"}  # spark-submit --files canary.txt


def main() -> None:
    """The driver."""
    url, folder = sys.argv[1], Path(sys.argv[2])
    spark = SparkSession.builder.getOrCreate()
    options = {"url": url, **SECRET, "queue": f"canary-{uuid.uuid4()}"}
    numbers = spark.range(0, 20, 1, 2).selectExpr("cast(id AS string) AS text")
    patiently(lambda: numbers.write.format("jms").options(**options).mode("append").save())
    frame = patiently(spark.read.format("jms").options(**options, maxEntriesPerPartition="10").load)
    frame.explain("formatted")
    frame.explain(True)
    patiently(lambda: frame.write.mode("overwrite").parquet(str(folder / "rows")))
    stream(spark, options, folder)
    fail(spark, options, numbers)
    for use in Use:
        print(repr(parse_options(options, use)), str(parse_options(options, use)))
    secret = [word for item in SECRET.items() for word in ("-o", "=".join(item))]
    code = command(["spark", "check", "-u", url, *secret, "--json"])
    (folder / "checked").write_text(f"{code} {jmsaio.__file__}", encoding="utf-8")
    spark.stop()


def stream(spark: SparkSession, options: dict[str, str], folder: Path) -> None:
    """Read a stream into files, and say how it went."""
    stream = spark.readStream.format("jms").options(**options, startingOffsets="earliest", subscription="s").load()
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    writer = writer.option("path", str(folder / "files")).trigger(availableNow=True)

    def run() -> StreamingQuery:
        query = writer.start()
        query.awaitTermination()
        return query

    query = patiently(run)
    query.explain(True)
    print(query.lastProgress, [progress.json for progress in query.recentProgress])


def fail(spark: SparkSession, options: dict[str, str], numbers: DataFrame) -> None:
    """Reads that are refused, and a write that fails in its task."""
    for wrong in {"queue": "missing"}, {"selector": "a ="}, {"url": "pulsar://127.0.0.1:1?jms.connectTimeout=500"}:
        try:
            spark.read.format("jms").options(**{**options, **wrong}).load().count()
        except PySparkException as error:
            print(f"refused: {error}", flush=True)
    try:
        bad = numbers.selectExpr("text", "map('a', 'b') AS properties", "map('a', 'int') AS property_types")
        bad.write.format("jms").options(**options).mode("append").save()
    except PySparkException as error:
        print(f"failed: {error}", flush=True)


if __name__ == "__main__":
    main()
