"""Columns say what the rows of the records say one by one, whatever the records have in common."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.codec import Stamp, encode, properties, row_columns
from jmsaio.codec.row_columns import PAYLOAD, ColumnMaker, RowColumns, TextTable
from jmsaio.codec.rows import RawRow, to_row
from jmsaio.model.wire import WireId
from tests.codec import golden_files
from tests.codec.described import build
from tests.codec.generated import Generator
from tests.kit.records import Record, UnreadableRecord, rows_of

#: What the texts of the wire may be, and what they may say: right, wrong, at a bound, or of another kind.
TEXTS = {
    "JMSPulsarMessageType": ["text", "bytes", "map", "stream", "object", "header", "odd", ""],
    "JMSConnectionID": ["one", "two"],
    "JMSMessageId": ["ID:1", ""],
    "JMSDeliveryTime": ["12", "-5", "", "x", "٣", "9" * 18, "9" * 19, "9" * 20, "+7", " 7"],
    "JMSExpiration": ["0", "99", "-1", "x"],
    "JMSPriority": ["0", "9", "10", "x"],
    "JMSDeliveryMode": ["1", "2", "x"],
    "JMSCorrelationID": ["YQ==", "/w==", "%%", ""],
    "JMSReplyTo": ["persistent://public/default/q", "persistent://a/b/t", ""],
    "JMSReplyToType": ["topic", "x"],
    "JMSType": ["kind", ""],
    "JMSXGroupID": ["g", ""],
    "a": ["1", "x", ""],
    "a_jsmtype": ["int", "long", "odd", ""],
    "b": ["text", "ä"],
    "b_jsmtype": ["double", "boolean"],
    "c_jmstype": ["int", "x"],
    "c": ["5"],
}
WIRES = st.lists(st.sampled_from(list(TEXTS)), unique=True, max_size=9).flatmap(
    lambda names: st.fixed_dictionaries({name: st.sampled_from(TEXTS[name]) for name in names})
)
BODIES = st.sampled_from([b"", b"text", "ä".encode(), b"\xff", b"\0\0\0\1", None])

#: Names and texts of which each says something: headers, marks, properties that look like them.
NAMES = st.sampled_from(
    ["a", "b", "a_jsmtype", "b_jsmtype", "a_jmstype", "JMSXGroupID", "JMSXGroupID_jsmtype", "JMSXGroupSeq",
     "JMSPulsarMessageType", "JMSDeliveryTime", "", "_jsmtype"]
)  # fmt: skip
MARKS = st.sampled_from(["", "5", "int", "integer", "double", "odd", "text"])

STAMP = Stamp("ID:a:1:2", "connection", 10, 10, 10)


def records_of(wires: Sequence[dict[str, str]], pick: random.Random) -> list[Record]:
    """Records with these properties, of which the other parts are chosen."""
    return [
        Record(
            pick.choice([b"text", b"", None, b"\xff"]),
            wire,
            pick.choice([None, "key", ""]),
            pick.choice([0, 7]),
            pick.choice([0, 2]),
            pick.choice([None, None, None, 5]),
            message_id=WireId(1, number, 2, pick.choice([-1, 3])),
            producer_name=pick.choice([None, "one"]),
            schema_version=pick.choice([None, b"1"]),
        )
        for number, wire in enumerate(wires)
    ]


def to_columns(records: Sequence[Any], **options: Any) -> RowColumns:
    maker = ColumnMaker(**options)
    maker.add(records)
    return maker.columns()


def assert_same(records: Sequence[Any], **options: Any) -> None:
    """Columns and rows say the same, properties in the same order."""
    columns = to_columns(records, **options)
    expected = [to_row(record, **options) for record in records]
    found = rows_of(columns)
    assert found == expected
    assert columns.size == len(records)
    assert [list(row.properties) for row in found] == [list(row.properties) for row in expected]
    assert [list(row.property_types) for row in found] == [list(row.property_types) for row in expected]


def test_columns_of_what_java_wrote_are_its_rows() -> None:
    found = [golden_files.received(case) for case in golden_files.cases()]
    records = [record for record in found if record is not None]
    assert len(records) > 100
    assert_same(records)
    assert_same(records * 3)
    assert_same([each for record in records[:20] for each in [record] * 20], namespace="a/b")


def test_columns_of_generated_messages_are_their_rows() -> None:
    records = [Record.sent(encode(build(item), STAMP)) for item in Generator(7).messages(50)]
    assert len(records) >= 50
    assert_same(records)


@given(st.lists(st.tuples(WIRES, st.integers(1, 4)), max_size=5), st.randoms(use_true_random=False))
def test_columns_of_any_records_are_their_rows(wires: list[tuple[dict[str, str], int]], pick: random.Random) -> None:
    repeated = [dict(wire) for wire, times in wires for _ in range(times)]
    pick.shuffle(repeated)
    assert_same(records_of(repeated, pick))


@given(
    st.lists(st.tuples(WIRES, st.integers(1, 4)), min_size=1, max_size=5),
    st.randoms(use_true_random=False),
    st.sets(st.sampled_from(RawRow._fields)),
)
def test_requested_fields_have_the_values_that_they_have_among_all(
    wires: list[tuple[dict[str, str], int]], pick: random.Random, fields: set[str]
) -> None:
    records = [*records_of([dict(wire) for wire, times in wires for _ in range(times)], pick), UnreadableRecord(b"x")]
    pick.shuffle(records)
    found, rows = to_columns(records, fields=fields), [to_row(record) for record in records]
    for field in fields:
        assert list(found[field]) == [getattr(row, field) for row in rows]


@given(st.lists(WIRES, min_size=1, max_size=6), st.randoms(use_true_random=False), st.sets(st.sampled_from(["type"])))
def test_a_payload_is_read_without_its_kind(wires: list[dict[str, str]], pick: random.Random, fields: set[str]) -> None:
    records = [*records_of(wires, pick), UnreadableRecord(b"x")]
    texts, data = to_columns(records, fields={PAYLOAD, *fields}).payloads()
    found = [each if text is None else text.encode() for text, each in zip(texts, data, strict=True)]
    assert found == [record.payload for record in records]


@pytest.mark.parametrize(
    ("field", "parts"),
    [
        ("publish_time", set()), ("ledger", set()), ("timestamp", {"event_time"}),
        ("text", {"properties", "payload"}), ("type", {"properties"}), ("key", {"properties", "key"}),
        (PAYLOAD, {"payload"}), ("properties", {"properties", "key"}), ("delivery_time", {"properties", "event_time"}),
        ("decode_error", {"properties", "payload", "key", "event_time"}),
    ],
)  # fmt: skip
def test_parts_from_which_nothing_is_requested_are_not_read(field: str, parts: set[str]) -> None:
    """The properties of a message take longer than all its other parts."""
    read = set[str]()

    class Watched(Record):
        def __getattribute__(self, name: str) -> Any:
            if not name.startswith("_"):
                read.add(name)
            return super().__getattribute__(name)

    records = [Watched(b"x", {"JMSPulsarMessageType": "text", "a": "1"}) for _ in range(2)]
    read.clear()
    to_columns(records, fields={field})
    assert read & {"properties", "payload", "key", "event_time"} == parts


@given(st.data(), WIRES, st.integers(2, 12), st.booleans())
def test_columns_of_records_with_the_same_names_are_their_rows(
    data: st.DataObject, wire: dict[str, str], size: int, keyed: bool
) -> None:
    texts = st.fixed_dictionaries({name: st.sampled_from(TEXTS[name]) for name in wire})
    records = [
        Record(data.draw(BODIES), data.draw(texts), "key" if keyed else None, 9, message_id=WireId(1, number))
        for number in range(size)
    ]
    assert_same(records)


def test_a_record_that_cannot_be_read_keeps_its_place() -> None:
    alike = [Record(b"x", {"JMSPulsarMessageType": "text", "a": str(number)}) for number in range(4)]
    assert_same([*alike[:2], UnreadableRecord(b"y"), *alike[2:]])


def test_a_body_that_cannot_be_read_spoils_no_other() -> None:
    wire = {"JMSPulsarMessageType": "text"}
    records = [Record(body, wire) for body in (b"a", b"\xff", None, b"b")]
    assert_same(records)
    assert [error is None for error in to_columns(records)["decode_error"]] == [True, False, True, True]


@pytest.mark.parametrize("groups", [row_columns.MAX_GROUPS - 1, row_columns.MAX_GROUPS * 2])
def test_records_with_ever_different_type_words_are_read_beyond_the_bound(groups: int) -> None:
    wires = [{"a": "1", "a_jsmtype": f"odd{number}"} for number in range(groups)]
    assert_same([Record(b"x", wire, message_id=WireId(1, number)) for number, wire in enumerate(wires * 3)])


def test_each_record_is_given_up_when_the_next_is_asked_for() -> None:
    records = [Record(b"x", {"JMSPulsarMessageType": "text", "a": str(number)}) for number in range(5)]
    asked, maker = list[int](), ColumnMaker()

    def given() -> Iterator[Record]:
        for record in records:
            asked.append(maker.size)
            yield record

    maker.add(given())
    assert (asked, maker.size) == ([0, 1, 2, 3, 4], 5)
    maker.add(records[:2])
    assert rows_of(maker.columns()) == [to_row(record) for record in (*records, *records[:2])]


def test_rows_with_the_same_properties_share_their_names() -> None:
    records = [Record(b"x", {"JMSPulsarMessageType": "text", "a": str(number)}, "k") for number in range(5)]
    columns = to_columns(records)
    table = columns["properties"]
    assert isinstance(table, TextTable)
    assert (table.names, list(map(list, table.columns))) == (("a", "JMSXGroupID"), [list("01234"), ["k"] * 5])


def test_no_records_have_columns_without_values() -> None:
    assert (to_columns([]).size, rows_of(to_columns([]))) == (0, [])
    assert RowColumns.of([])["text"] == ()


@given(st.dictionaries(NAMES, MARKS, max_size=8), st.none() | MARKS, st.none() | st.integers(0, 1 << 40))
def test_properties_of_a_column_are_those_of_the_record(
    wire: dict[str, str], key: str | None, number: int | None
) -> None:
    texts, words = properties.read_texts(wire, key, number)
    found = to_columns([Record(b"x", dict(wire), key, sequence_id=number) for _ in range(2)])
    assert [list(row.items()) for row in found["properties"]] == [list(texts.items())] * 2
    assert list(found["property_types"]) == [words] * 2


@given(st.lists(st.tuples(MARKS, MARKS, MARKS, MARKS), min_size=3, max_size=8))
def test_records_with_the_same_names_keep_their_own_texts_and_words(rows: list[tuple[str, ...]]) -> None:
    wires = [dict(zip(("n", "JMSType", "n_jsmtype", "m"), row, strict=True)) for row in rows]
    found = to_columns([Record(b"x", wire) for wire in wires])
    expected = [properties.read_texts(wire, None, None) for wire in wires]
    assert list(zip(found["properties"], found["property_types"], strict=True)) == expected


def test_records_with_the_same_marks_share_their_words() -> None:
    records = [Record(b"x", {"n": text, "n_jsmtype": "int"}) for text in ("5", "6")]
    first, second = to_columns(records)["property_types"]
    assert first == {"n": "int"} and first is second


def test_groups_have_a_bound_whatever_the_names() -> None:
    maker = ColumnMaker()
    records = [Record(b"x", {f"p{number}" * 100: "5"}) for number in range(row_columns.MAX_GROUPS * 3)]
    maker.add(records)
    assert len(maker._shapes) == len(maker._groups) == row_columns.MAX_GROUPS
    assert rows_of(maker.columns()) == [to_row(record) for record in records]


def test_a_table_of_texts_is_a_dictionary_for_each_row() -> None:
    table = TextTable(("a", "b"), [["1", "2"], ["x", "y"]], 2)
    assert (len(table), list(table)) == (2, [{"a": "1", "b": "x"}, {"a": "2", "b": "y"}])
    assert list(TextTable((), [], 3)) == [{}, {}, {}]


def test_what_is_shown_of_a_table_has_no_texts() -> None:
    assert "secret" not in repr(TextTable(("a",), [["secret"]], 1))


def test_records_that_are_alike_become_a_column_for_each_field() -> None:
    records = [
        Record(b"x", {"JMSType": "t", "a": str(number)}, event_time=5, message_id=WireId(1, number))
        for number in range(2)
    ]
    columns = to_columns(records)
    assert len(columns.values) == len(RawRow._fields)
    assert [(row.type, row.properties, row.data, row.entry) for row in rows_of(columns)] == [
        ("t", {"a": "0"}, b"x", 0), ("t", {"a": "1"}, b"x", 1)
    ]  # fmt: skip
    assert [(row.message_id, row.timestamp, row.delivery_time) for row in rows_of(columns)] == [
        ("ID:1:0:-1", 5, 5), ("ID:1:1:-1", 5, 5)
    ]  # fmt: skip
