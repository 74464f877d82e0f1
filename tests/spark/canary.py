"""A driver that uses and betrays a secret, if it can: ``python -m tests.spark.canary URL FOLDER``.

It leaves what Spark and the source write behind in the folder, for the search in ``test_canary``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.errors import PySparkException

from jmsaio.spark.options.parse import Use, parse_options
from tests.spark import session


def main() -> None:
    """The command."""
    url, folder = sys.argv[1], Path(sys.argv[2])
    (folder / "events").mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
    }
    spark = session.start(settings=settings)
    spark.sparkContext.setLogLevel("INFO")
    options = {"url": url, "authPlugin": "token", "authParams": "env:JMSAIO_TEST_CANARY", "queue": "canary"}
    numbers = spark.range(20).selectExpr("cast(id AS string) AS text").coalesce(1)
    numbers.write.format("jms").options(**options).mode("append").save()
    frame = spark.read.format("jms").options(**options).load()
    frame.explain("formatted")
    frame.explain(True)
    frame.write.parquet(str(folder / "rows"))
    stream = spark.readStream.format("jms").options(**options, startingOffsets="earliest", subscription="s").load()
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.option("path", str(folder / "files")).trigger(availableNow=True).start()
    query.awaitTermination()
    query.explain(True)
    print(query.lastProgress, [progress.json for progress in query.recentProgress])
    refused = {"queue": "missing"}, {"selector": "a ="}, {"url": "pulsar://127.0.0.1:1?jms.connectTimeout=2000"}
    for wrong in refused:
        try:
            spark.read.format("jms").options(**{**options, **wrong}).load().count()
        except PySparkException as error:
            print("refused:", error)
    try:
        bad = numbers.selectExpr("text", "map('a', 'b') AS properties", "map('a', 'int') AS property_types")
        bad.write.format("jms").options(**options).mode("append").save()
    except PySparkException as error:
        print("failed:", error)
    for use in Use:
        print(repr(parse_options(options, use)), str(parse_options(options, use)))
    spark.stop()


if __name__ == "__main__":
    main()
