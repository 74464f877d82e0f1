"""The columns of a schema that Spark hands over."""

from __future__ import annotations

import pytest
from pyspark.sql.types import IntegerType, LongType, MapType, StringType, StructField, StructType, TimestampType

from jmsaio.errors import ConfigurationError
from jmsaio.spark.model.schema import COLUMNS, Property, Type
from jmsaio.spark.options.parse import Use, parse_options
from jmsaio.spark.requested import choose_columns

OPTIONS = parse_options({"url": "pulsar://broker:6650", "queue": "orders"}, Use.READ)


def schema(*fields: StructField) -> StructType:
    return StructType(list(fields))


def test_columns_come_in_the_order_and_number_of_the_schema_in_any_case() -> None:
    wanted = schema(
        StructField("TEXT", StringType()),
        StructField("publish_time", TimestampType()),
        StructField("Properties", MapType(StringType(), StringType())),
        StructField("body_json", StringType()),
    )
    chosen = choose_columns(OPTIONS, wanted)
    assert [column.name for column in chosen.columns] == ["text", "publish_time", "properties", "body_json"]
    assert chosen.declared == ()
    assert all(column in COLUMNS for column in chosen.columns)


def test_fields_of_props_are_the_declared_properties() -> None:
    props = schema(StructField("region", StringType()), StructField("qty", LongType()))
    chosen = choose_columns(OPTIONS, schema(StructField("props", props)))
    assert chosen.declared == (Property("region", Type.STRING), Property("qty", Type.LONG))


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        (StructField("texts", StringType()), "the source jms has no column 'texts'; did you mean 'text'"),
        (StructField("text", StringType(), nullable=False), "column 'text' can be NULL; leave out NOT NULL"),
        (StructField("JMSPriority", LongType()), "column 'JMSPriority' is INT, not bigint"),
        (StructField("props", StringType()), "column 'props' is a STRUCT of properties"),
        (StructField("props", StructType([])), "column 'props' is a STRUCT of properties"),
        (
            StructField("props", StructType([StructField("at", TimestampType())])),
            "property 'at' is one of STRING, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, not timestamp",
        ),
        (StructField("position", StructType([StructField("ledger", IntegerType())])), "column 'position' is STRUCT<"),
    ],
)
def test_a_column_that_cannot_be_given_so_is_refused(field: StructField, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        choose_columns(OPTIONS, schema(StructField("text", StringType()) if field.name != "text" else field, field))
    assert sentence in str(refused.value)


def test_the_column_value_is_not_one_of_the_table() -> None:
    """It has the type of the values, or any that the user gives; without the option there is no such column."""
    options = parse_options({"url": "pulsar://broker:6650", "queue": "orders", "schema": "auto"}, Use.READ)
    wanted = schema(StructField("text", StringType()), StructField("Value", schema(StructField("a", LongType()))))
    assert [column.name for column in choose_columns(options, wanted).columns] == ["text"]
    with pytest.raises(ConfigurationError, match="no column 'Value'"):
        choose_columns(OPTIONS, wanted)
