"""Count the messages of a queue by JMSType with Spark: ``python spark_batch.py URL QUEUE``."""

import sys

from pyspark.sql import SparkSession


def count(spark: SparkSession, url: str, queue: str) -> dict[str | None, int]:
    """Return the number of stored messages by JMSType."""
    messages = spark.read.format("jms").options(url=url, queue=queue, columns="JMSType").load()
    return {row["JMSType"]: row["count"] for row in messages.groupBy("JMSType").count().collect()}


if __name__ == "__main__":
    print(count(SparkSession.builder.getOrCreate(), sys.argv[1], sys.argv[2]))
