"""Typed properties on the wire (Jakarta Messaging 3.1, 3.5 Message properties)."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.codec import properties
from jmsaio.errors import MessageFormatError
from jmsaio.model.headers import RESERVED
from jmsaio.model.values import Byte, Float, Long, Short
from tests.codec import strategies
from tests.kit.records import Record, decode

names = st.from_regex(r"[a-zA-Z_$][a-zA-Z0-9_$]*", fullmatch=True).filter(
    lambda name: name not in properties.HIDDEN and not name.endswith(("_jsmtype", "_jmstype")) and "JMSX" not in name
)


def written(values: dict[str, Any]) -> dict[str, str]:
    """The record's properties."""
    wire: dict[str, str] = {}
    properties.write(values, wire)
    return wire


def read(wire: dict[str, str], **more: Any) -> dict[str, Any]:
    """The message's properties, apart from JMSXDeliveryCount."""
    found: dict[str, Any] = properties.read(Record(b"", wire, **more))
    assert type(found.pop("JMSXDeliveryCount")) is int
    return found


@pytest.mark.parametrize(
    ("value", "text", "mark"),
    [
        (True, "true", "boolean"), (False, "false", "boolean"), (Byte(-128), "-128", "byte"), (Short(5), "5", "short"),
        (5, "5", "int"), (-(1 << 31), "-2147483648", "int"), (Long(5), "5", "long"), (Float(1.3), "1.3", "float"),
        (Float(0.1), "0.1", "float"), (1e10, "1.0E10", "double"), (1e-4, "1.0E-4", "double"), (-0.0, "-0.0", "double"),
        (float("nan"), "NaN", "double"), (float("-inf"), "-Infinity", "double"), ("text", "text", None), ("", "", None),
    ],
)  # fmt: skip
def test_a_property_of_each_type_has_its_text_and_mark(value: Any, text: str, mark: str | None) -> None:
    wire = written({"n": value})
    assert wire == {"n": text} | ({"n_jsmtype": mark} if mark is not None else {})
    assert strategies.same(read(wire)["n"], value)


@given(st.dictionaries(names, strategies.properties, max_size=8))
def test_properties_are_read_as_they_were_written(values: dict[str, Any]) -> None:
    found = read(written(values))
    assert list(found) == list(values)
    assert all(map(strategies.same, found.values(), values.values()))
    for name, value in values.items():
        assert strategies.same(properties.read_one(written(values), name), value)


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=30), max_size=6), st.sampled_from(["n", "JMSX"]))
def test_any_record_is_read(wire: dict[str, str], name: str) -> None:
    for mark in ("boolean", "byte", "short", "int", "long", "float", "double", "odd"):
        wire |= {f"{name}{mark}": next(iter(wire.values()), "5"), f"{name}{mark}_jsmtype": mark}
    read(wire)
    for key in wire:
        properties.read_one(wire, key)


def test_none_is_left_out() -> None:
    assert written({"n": None, "m": 1}) == {"m": "1", "m_jsmtype": "int"}


def test_the_delivery_count_belongs_to_one_delivery() -> None:
    assert written({"JMSXDeliveryCount": 7}) == {}
    assert properties.read(Record(b"", {"JMSXDeliveryCount": "99"}, redelivery_count=2)) == {"JMSXDeliveryCount": 3}


@pytest.mark.parametrize("name", ["JMSConnectionID", "JMSTimestamp", "JMSMessageID", "n_jsmtype", "JMS_jmsaio_object"])
def test_names_that_the_wire_uses(name: str) -> None:
    with pytest.raises(MessageFormatError, match="can't name a property"):
        written({name: "x"})


def test_lone_surrogates_and_odd_values() -> None:
    for values in ({"n": "\ud800"}, {"\ud800": 1}, {"n": b"bytes"}, {"n": [1]}):
        with pytest.raises(MessageFormatError):
            written(values)


def test_headers_are_not_properties() -> None:
    wire = dict.fromkeys([*RESERVED, "JMSConnectionID", "JMSTimestamp", "JMSMessageID", "JMS_jmsaio_object"], "1")
    assert read(wire) == {}
    assert all(properties.read_one(wire, name) is None for name in wire)
    assert read({"JMSXUserID": "me", "JMS_vendor": "x", "JMSOther": "y"}) == {
        "JMSXUserID": "me", "JMS_vendor": "x", "JMSOther": "y"
    }  # fmt: skip


def test_both_spellings_of_mark_and_int() -> None:
    for mark in ("n_jsmtype", "n_jmstype"):
        for word in ("int", "integer"):
            assert read({"n": "5", mark: word}) == {"n": 5}
            assert properties.read_one({"n": "5", mark: word}, "n") == 5
    assert read({"n_jmstype": "long", "n": "5"}) == {"n": Long(5)}
    assert read({"n": "5", "n_jmstype": "long", "n_jsmtype": "short"}) == {"n": Short(5)}
    assert read({"n": "5", "n_jmstype": "int", "m": "6", "m_jmstype": "int"}) == {"n": 5, "m": 6}


@pytest.mark.parametrize("text", ["9999999999", "2147483648"])
def test_an_int_of_ten_digits_that_is_too_large_stays_a_text(text: str) -> None:
    wire = {"n": text, "n_jsmtype": "int", "m": "2147483647", "m_jsmtype": "int"}
    assert read(wire) == {"n": text, "m": 2147483647}
    assert (properties.read_one(wire, "n"), properties.read_one(wire, "m")) == (text, 2147483647)


def test_properties_that_are_merely_named_like_a_mark() -> None:
    assert read({"n_jmstype": "int"}) == {"n_jmstype": "int"}
    assert read({"n": "5", "n_jmstype": "invoice"}) == {"n": "5", "n_jmstype": "invoice"}
    assert read({"n_jsmtype": "int"}) == {}
    assert read({"n": "long"}) == {"n": "long"}


@pytest.mark.parametrize("name", ["n", "JMSPriority", "JMSXGroupID", ""])
def test_one_property_is_read_as_all_of_them_are(name: str) -> None:
    words = (None, "int", "integer", "long", "odd", "")
    for text, mark, old in product((None, "5", "five", "int"), words, words):
        given = {name: text, f"{name}_jsmtype": mark, f"{name}_jmstype": old}
        wire = {key: content for key, content in given.items() if content is not None}
        found = read(wire)
        assert all(strategies.same(properties.read_one(wire, key), found.get(key)) for key in wire), wire
        one, all_of_them = (decode(Record(b"", wire), None) for _ in range(2))
        known = dict(all_of_them.properties)
        for key in (*wire, "absent", "JMSXDeliveryCount"):
            assert (key in one.properties) is one.property_exists(key) is (key in known), wire
            assert strategies.same(one.properties.get(key), known.get(key)), wire


@pytest.mark.parametrize(
    ("text", "mark"), [("five", "int"), ("300", "byte"), ("", "long"), ("inf", "double"), ("5", "string"), ("5", "odd")]
)
def test_a_text_that_is_not_of_its_type_stays_a_text(text: str, mark: str) -> None:
    assert read({"n": text, "n_jsmtype": mark, "m": "1", "m_jsmtype": "int"}) == {"n": text, "m": 1}


def test_numbers_in_any_form_that_java_reads() -> None:
    assert read({"n": "+5", "n_jsmtype": "int"}) == {"n": 5}
    assert read({"n": "٥", "n_jsmtype": "int"}) == {"n": 5}
    for text in ("²", "𝟓"):  # Java reads digits of 16 bits alone
        assert read({"n": text, "n_jsmtype": "int"}) == {"n": text}
        assert properties.read_one({"n": text, "n_jsmtype": "int"}, "n") == text
    assert read({"n": " 1e3 ", "n_jsmtype": "double"}) == {"n": 1000.0}
    assert read({"n": "TRUE", "n_jsmtype": "boolean"}) == {"n": True}


def test_the_group_id_comes_from_the_key_first() -> None:
    assert read({"JMSXGroupID": "old"}, key="new") == {"JMSXGroupID": "new"}
    assert read({"JMSXGroupID": "only a property"}) == {"JMSXGroupID": "only a property"}
    assert read({"JMSXGroupID": ""}) == {} == read({"JMSXGroupID": ""}, key="")
    assert read({}, key="foreign") == {"JMSXGroupID": "foreign"}


def test_a_group_sequence_set_by_the_sender_goes_before_the_records() -> None:
    assert read({}, sequence_id=5) == {"JMSXGroupSeq": 5}
    assert read({"JMSXGroupSeq": "7", "JMSXGroupSeq_jsmtype": "int"}, sequence_id=5) == {"JMSXGroupSeq": 7}
    assert strategies.same(properties.sequence(1 << 40), Long(1 << 40))
    assert strategies.same(properties.sequence(0), 0)
    for number in (-(1 << 31) - 1, 1 << 31):
        assert strategies.same(properties.sequence(number), Long(number))
    for number in (-(1 << 31), (1 << 31) - 1):
        assert strategies.same(properties.sequence(number), number)


def test_names_are_remembered_within_bounds() -> None:
    caches = (properties._WRITTEN, properties._READ)
    for cache in caches:
        cache.clear()
    for length in (128, 129, 1000):
        name = "n" * length
        assert read(written({name: 1})) == {name: 1}
        assert all((name in cache) is (length == 128) for cache in caches)
    for number in range(5000):
        written({f"bound{number}": 1}), read({f"bound{number}": "1"})
    for cache in caches:
        assert len(cache) == 4096
        cache.clear()


def test_the_dead_letter_of_what_expired_does_not_expire() -> None:
    wire = {"JMSExpiration": "5", "JMSExpiration_jsmtype": "long", "a": "b"}
    letter = properties.as_dead_letter(wire)
    assert letter == {"a": "b", "JMS_jmsaio_expired_at": "5", "JMS_jmsaio_expired_at_jsmtype": "long"}
    assert read(letter) == {"a": "b", "JMS_jmsaio_expired_at": 5}
    assert wire["JMSExpiration"] == "5"
    assert properties.as_dead_letter({"a": "b"}) == {"a": "b"}


def test_where_a_property_has_both_marks_the_one_that_is_written_counts() -> None:
    found = read({"n": "5", "n_jsmtype": "long", "n_jmstype": "int"})
    assert found == {"n": 5} and type(found["n"]) is Long


def test_a_mark_in_the_documented_spelling_that_has_such_a_mark_itself_is_left_out() -> None:
    for wire in (
        {"n": "5", "n_jmstype": "int", "n_jmstype_jmstype": "long"},
        {"n": "5", "n_jmstype_jmstype": "long", "n_jmstype": "int"},
    ):
        found = read(wire)
        assert found.pop("n") == 5
        texts, words = properties.read_texts(wire, None, None)
        assert texts.pop("n") == "5" and words == {"n": "int"}
        assert found == texts


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=30), max_size=6), st.text(max_size=3), st.booleans())
def test_texts_and_words_are_those_of_the_values(wire: dict[str, str], key: str, numbered: bool) -> None:
    for number, mark in enumerate(("int", "integer", "byte", "double", "string", "odd")):
        spelling = ("_jsmtype", "_jmstype")[number % 2]
        wire |= {mark: next(iter(wire.values()), "5"), mark + spelling: mark}
    record = Record(b"", wire, key, sequence_id=1 << 40 if numbered else None)
    texts, words = properties.read_texts(wire, key, record.sequence_id)
    found = properties.read(record)
    del found["JMSXDeliveryCount"]
    assert list(texts) == list(found) and set(words) <= set(texts)
    assert set(words.values()) <= {"boolean", "byte", "short", "int", "long", "float", "double"}
    assert all(strategies.same(properties.value_of(texts[name], words.get(name, "")), found[name]) for name in texts)


def test_a_group_that_comes_from_the_key_is_a_string() -> None:
    wire = {"JMSXGroupID": "5", "JMSXGroupID_jsmtype": "int"}
    assert properties.read_texts(wire, None, None) == ({"JMSXGroupID": "5"}, {"JMSXGroupID": "int"})
    assert properties.read_texts(wire, "6", None) == ({"JMSXGroupID": "6"}, {})
    assert properties.read_texts(wire | {"JMSXGroupID": ""}, None, None) == ({}, {})


@given(st.dictionaries(names, strategies.properties, max_size=8))
def test_texts_are_written_as_values_are(values: dict[str, Any]) -> None:
    wire = written(values)
    again: dict[str, str] = {}
    properties.write_texts(*properties.read_texts(wire, None, None), again)
    assert again == wire


def test_texts_with_a_long_name_and_both_words_for_int_are_written() -> None:
    wire: dict[str, str] = {}
    properties.write_texts({"n" * 300: "1"}, {"n" * 300: "integer"}, wire)
    assert wire == {"n" * 300: "1", "n" * 300 + "_jsmtype": "int"}


@pytest.mark.parametrize("name", ["JMSPriority", "JMSXDeliveryCount", "JMSConnectionID", "n_jsmtype", "JMSTimestamp"])
def test_texts_of_names_that_the_wire_uses_are_refused(name: str) -> None:
    with pytest.raises(MessageFormatError, match=f"{name}' can't name a property"):
        properties.write_texts({name: "1"}, {}, {})


def test_texts_with_lone_surrogates_and_words_that_are_none_are_refused() -> None:
    for texts, words in (({"n": "\ud800"}, {}), ({"\ud800": ""}, {}), ({"n": ""}, {"n": "string"}), ({}, {"n": "int"})):
        with pytest.raises(MessageFormatError):
            properties.write_texts(texts, words, {})
