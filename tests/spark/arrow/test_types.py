"""The Arrow types are those that Spark expects of a source."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from jmsaio.spark.arrow.types import ARROW, schema_of
from jmsaio.spark.model.schema import COLUMNS, Body, Column, Property, Type, columns_of

POSITION = spark.StructType(
    [
        spark.StructField("ledger", spark.LongType()),
        spark.StructField("entry", spark.LongType()),
        spark.StructField("batch", spark.IntegerType()),
    ]
)
SPARK: dict[Type, Any] = {
    Type.STRING: spark.StringType(),
    Type.BINARY: spark.BinaryType(),
    Type.BOOLEAN: spark.BooleanType(),
    Type.BYTE: spark.ByteType(),
    Type.SHORT: spark.ShortType(),
    Type.INT: spark.IntegerType(),
    Type.LONG: spark.LongType(),
    Type.FLOAT: spark.FloatType(),
    Type.DOUBLE: spark.DoubleType(),
    Type.TIMESTAMP: spark.TimestampType(),
    Type.TEXTS: spark.MapType(spark.StringType(), spark.StringType()),
    Type.POSITION: POSITION,
}
DECLARED = tuple(
    Property(f"a {kind.name}`", kind)
    for kind in (Type.STRING, Type.BOOLEAN, Type.BYTE, Type.SHORT, Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE)
)


def spark_schema(columns: tuple[Column, ...]) -> Any:
    """Spark's own schema of columns. Made without its parser of DDL, which needs a JVM."""
    properties = spark.StructType([spark.StructField(each.name, SPARK[each.type]) for each in DECLARED])
    return spark.StructType([spark.StructField(each.name, SPARK.get(each.type, properties)) for each in columns])


def nullability(field: pa.Field) -> list[object]:
    """Names and nullability of a field and of those inside it."""
    kind = field.type
    parts = [kind.key_field, kind.item_field] if pa.types.is_map(kind) else []
    if pa.types.is_struct(kind):
        parts = list(kind)
    return [field.name, field.nullable, *map(nullability, parts)]


@pytest.mark.parametrize("columns", [COLUMNS, columns_of(Body.RAW), COLUMNS[:1]], ids=["all", "raw", "one"])
def test_the_arrow_schema_is_the_one_that_spark_makes_of_its_own(columns: tuple[Column, ...]) -> None:
    """Names and types, those inside of structs and maps, too, and that each may be NULL."""
    expected = to_arrow_schema(spark_schema(columns), timezone="UTC")
    found = schema_of(columns, DECLARED)
    assert found.equals(expected, check_metadata=False)
    assert [nullability(field) for field in found] == [nullability(field) for field in expected]


def test_the_types_of_spark_are_those_of_the_ddl() -> None:
    for kind, made in SPARK.items():
        assert made.simpleString() == kind.value.lower().replace(", ", ",").replace(": ", ":")


def test_each_type_of_column_has_an_arrow_type() -> None:
    assert set(ARROW) == set(SPARK) == set(Type) - {Type.PROPERTIES}
