"""The properties that a reader declares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jmsaio.spark.model.schema import Property, Type, ddl, find_column
from jmsaio.spark.options.property_schema import parse_properties

TYPES = (Type.STRING, Type.BOOLEAN, Type.BYTE, Type.SHORT, Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE)


def test_names_and_types_are_read_in_their_order() -> None:
    assert parse_properties(" region STRING,\n qty int , `a, ``b``` : BigInt") == (
        Property("region", Type.STRING),
        Property("qty", Type.INT),
        Property("a, `b`", Type.LONG),
    )


@pytest.mark.parametrize(
    ("word", "kind"),
    [("byte", Type.BYTE), ("short", Type.SHORT), ("integer", Type.INT), ("long", Type.LONG), ("real", Type.FLOAT)]
    + [(kind.value, kind) for kind in TYPES],
)
def test_a_type_has_the_names_of_spark(word: str, kind: Type) -> None:
    assert parse_properties(f"a {word}") == (Property("a", kind),)


names = st.text("aBé`,: <>.", min_size=1, max_size=5)


@given(
    st.lists(st.tuples(names, st.sampled_from(TYPES)), min_size=1, max_size=4, unique_by=lambda each: each[0].lower())
)
def test_what_the_schema_of_the_column_says_is_read_back(fields: list[tuple[str, Type]]) -> None:
    declared = tuple(Property(name, kind) for name, kind in fields)
    column = find_column("props")
    assert column is not None
    written = ddl([column], declared).removeprefix("props STRUCT<").removesuffix(">")
    assert parse_properties(written) == declared


REFUSED = [
    ("", "must be names and types, such as region STRING, qty INT; see ''"),
    ("region", "must be names and types, such as region STRING, qty INT; see 'region'"),
    ("a INT,", "must be names and types, such as region STRING, qty INT; see ''"),
    ("a INT NOT NULL", "must be names and types, such as region STRING, qty INT; see 'a INT NOT NULL'"),
    ("a INT, b STRUCT<c: INT>", "must be names and types, such as region STRING, qty INT; see ' b STRUCT<c: INT>'"),
    ("`` INT", "must be names and types, such as region STRING, qty INT; see '`` INT'"),
    ("a STRNG", "property 'a' can't have the type 'STRNG'; did you mean 'STRING'?"),
    ("a TIMESTAMP", "property 'a' can't have the type 'TIMESTAMP'; there are STRING, BOOLEAN, TINYINT, SMALLINT, INT, "
     "BIGINT, FLOAT, DOUBLE, BYTE, SHORT, INTEGER, LONG, REAL"),
    ("a INT, A INT", "declares 'A' twice; Spark ignores the case of a name"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_another_text_is_refused_with_the_place(text: str, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_properties(text)
    assert str(caught.value) == why
