"""What records with the same names share, and how the texts of their properties are read as rows."""

from __future__ import annotations

from jmsaio.codec.alike_records import AlikeRecords, Parts, TextTable
from jmsaio.codec.rows import RawRow
from jmsaio.codec.shapes import text_getter
from jmsaio.model.wire import WireId


def test_a_table_of_texts_is_a_dictionary_for_each_row() -> None:
    table = TextTable(("a", "b"), [["1", "2"], ["x", "y"]], 2)
    assert (len(table), list(table)) == (2, [{"a": "1", "b": "x"}, {"a": "2", "b": "y"}])
    assert list(TextTable((), [], 3)) == [{}, {}, {}]


def test_what_is_shown_of_a_table_has_no_texts() -> None:
    assert "secret" not in repr(TextTable(("a",), [["secret"]], 1))


def test_records_that_are_alike_become_a_column_for_each_field() -> None:
    kept = ("JMSType", "a")
    alike = AlikeRecords(("JMSType", "a"), (), text_getter(()), kept, text_getter(kept), ("a",), "bytes", {})
    for number in range(2):
        alike.texts.append(alike.own({"JMSType": "t", "a": str(number)}))
        alike.parts.append(Parts(b"x", None, 5, WireId(1, number), 6, "one", None, 0, None))
    columns = alike.columns("public/default", check_body=True)
    assert len(columns) == len(RawRow._fields)
    rows = [RawRow._make(values) for values in zip(*columns, strict=True)]
    assert [(row.type, row.properties, row.data, row.entry) for row in rows] == [
        ("t", {"a": "0"}, b"x", 0), ("t", {"a": "1"}, b"x", 1)
    ]  # fmt: skip
    assert [(row.message_id, row.timestamp, row.delivery_time) for row in rows] == [
        ("ID:1:0:-1", 5, 5), ("ID:1:1:-1", 5, 5)
    ]  # fmt: skip
