"""Typed properties through the message: accessors, states, the mapping."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import (
    IllegalArgumentError,
    MessageFormatError,
    MessageNotWriteableError,
    NullValueError,
    NumberFormatError,
    UnsupportedOperationError,
)
from jmsaio.model.messages.message import Message, TextMessage
from jmsaio.model.values import TYPE_NAMES, Byte, Char, Float, Int, Long, Short
from tests.model.support import BY_NAME, PROPERTY_TYPES, READABLE, SAMPLES, Source, expected, received

NAMES = [*(TYPE_NAMES[kind] for kind in PROPERTY_TYPES), "object"]


def setter(message: Message, kind: str) -> Any:
    return getattr(message, f"set_{kind}_property")


def getter(message: Message, kind: str) -> Any:
    return getattr(message, f"get_{kind}_property")


@pytest.mark.parametrize(("source", "target"), list(product(PROPERTY_TYPES, PROPERTY_TYPES)))
@pytest.mark.parametrize("through_object", [False, True])
def test_set_and_get(source: type, target: type, through_object: bool) -> None:
    message = Message()
    setter(message, "object" if through_object else TYPE_NAMES[source])("p", SAMPLES[source])
    stored = message.get_object_property("p")
    assert stored == SAMPLES[source] and type(stored) is type(SAMPLES[source])
    if target in READABLE[source]:
        value = getter(message, TYPE_NAMES[target])("p")
        assert value == expected(source, target)
        assert type(value) in (bool, int, float, str)
    else:
        with pytest.raises(MessageFormatError, match="'p'"):
            getter(message, TYPE_NAMES[target])("p")


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("name", ["", None, "a b", "NULL", "JMSType", 5, [], "x_jsmtype"])
def test_names_are_checked_before_all_else(kind: str, name: Any) -> None:
    message = Message()
    for target in (message, received(message)):
        with pytest.raises(IllegalArgumentError):
            setter(target, kind)(name, SAMPLES[int])


@pytest.mark.parametrize("kind", NAMES)
def test_received_properties_are_read_only_until_cleared(kind: str) -> None:
    value = SAMPLES[BY_NAME[kind]] if kind != "object" else object()
    message = received(TextMessage("x"), Source(p=1))
    with pytest.raises(MessageNotWriteableError):
        setter(message, kind)("p", value)
    assert message.get_int_property("p") == 1
    message.clear_properties()
    assert message.get_property_names() == [] and message.text == "x"
    message.set_int_property("q", 2)
    assert dict(message.properties) == {"q": 2}
    with pytest.raises(MessageNotWriteableError):
        message.text = "y"


@pytest.mark.parametrize("stored", [True, False], ids=["None", "missing"])
def test_missing_and_null(stored: bool) -> None:
    message = Message()
    if stored:
        message.set_object_property("p", None)
    assert message.property_exists("p") is stored
    assert message.get_boolean_property("p") is False
    assert message.get_string_property("p") is None and message.get_object_property("p") is None
    for kind in ("byte", "short", "int", "long"):
        with pytest.raises(NumberFormatError):
            getter(message, kind)("p")
    for kind in ("float", "double"):
        with pytest.raises(NullValueError):
            getter(message, kind)("p")


def test_null_is_for_texts_and_objects_only() -> None:
    message = Message()
    message.set_string_property("s", None)
    message.set_object_property("o", None)
    for kind in ("boolean", "byte", "short", "int", "long", "float", "double"):
        with pytest.raises(NullValueError):
            setter(message, kind)("p", None)
    assert message.get_property_names() == ["s", "o"]


@pytest.mark.parametrize("value", [Char("x"), b"x", [], {}, (), object(), 2**63, bytearray(b"")])
def test_objects_that_are_no_property(value: Any) -> None:
    message = Message()
    for put in (
        lambda: message.set_object_property("p", value),
        lambda: message.properties.update(p=value),
        lambda: message.properties.__setitem__("p", value),
        lambda: Message(properties={"p": value}),
    ):
        with pytest.raises(MessageFormatError, match="'p'"):
            put()
    assert not message.property_exists("p")


@pytest.mark.parametrize(
    ("kind", "value"),
    [("boolean", 1), ("boolean", "true"), ("byte", 128), ("short", 2**15), ("int", 2**31), ("long", 2**63),
     ("int", 1.0),
     ("int", "1"), ("int", True), ("float", "1"), ("float", True), ("double", True), ("double", "1"),
     ("double", 10**400),
     ("float", 10**400), ("string", 1), ("string", b"x"), ("long", 1.5)],
)  # fmt: skip
def test_values_of_another_type(kind: str, value: Any) -> None:
    message = Message(properties={"p": "kept"})
    with pytest.raises(MessageFormatError, match="'p'"):
        setter(message, kind)("p", value)
    assert message.get_object_property("p") == "kept"


@pytest.mark.parametrize(
    ("value", "kind"),
    [(5, int), (2**31, Long), (True, bool), (1.5, float), ("x", str), (Int(5), int), (Byte(5), Byte), (Short(5), Short),
     (Float(1.1), Float), (None, type(None))],
)  # fmt: skip
def test_the_mapping_finds_the_type(value: Any, kind: type) -> None:
    one, two, three = Message(), Message(), Message(properties={"p": value})
    one.properties["p"] = value
    two.properties.update({"p": value})
    four = Message()
    four.properties = {"p": value}
    for message in (one, two, three, four):
        assert type(message.properties["p"]) is kind and message.properties["p"] == value


def test_the_view_is_a_mapping() -> None:
    message = Message(properties={"a": 1, "b": "x"})
    view = message.properties
    message.set_boolean_property("c", True)
    assert view == {"a": 1, "b": "x", "c": True} and len(view) == 3 and "a" in view and "d" not in view
    assert list(view) == message.get_property_names() == ["a", "b", "c"]
    assert repr(view) == "{'a': 1, 'b': 'x', 'c': True}"
    assert view.get("d") is None and view.setdefault("a", 9) == 1
    with pytest.raises(KeyError):
        view["d"]
    removals: list[Callable[[], object]] = [
        lambda: view.pop("a"),
        view.popitem,
        lambda: view.__delitem__("a"),
    ]
    for remove in removals:
        with pytest.raises(UnsupportedOperationError):
            remove()
    view.clear()
    assert not view


def test_an_update_is_whole_or_not_at_all() -> None:
    message = Message(properties={"a": 1})
    wrong: list[dict[str, object]] = [{"b": 2, "c": []}, {"b": 2, "c d": 3}]
    for bad in wrong:
        with pytest.raises((MessageFormatError, IllegalArgumentError)):
            message.properties.update(bad)  # type: ignore[arg-type]  # what a caller may do
        with pytest.raises((MessageFormatError, IllegalArgumentError)):
            message.properties = bad  # type: ignore[assignment]  # what a caller may do
    assert message.properties == {"a": 1}
    message.properties.update([("b", 2)], c=3)
    assert message.properties == {"a": 1, "b": 2, "c": 3}
    message.properties.update(message.properties)
    message.properties = message.properties
    assert message.properties == {"a": 1, "b": 2, "c": 3}


def test_a_received_mapping_is_read_only() -> None:
    message = received(Message(), Source(a=1))
    for put in (
        lambda: message.properties.update(b=2),
        lambda: message.properties.__setitem__("b", 2),
        lambda: setattr(message, "properties", {}),
    ):
        with pytest.raises(MessageNotWriteableError):
            put()
    message.clear_properties()
    message.properties = {"b": 2}
    assert message.properties == {"b": 2}


def test_the_caller_s_mapping_is_copied() -> None:
    given_ = {"a": 1}
    message = Message(properties=given_)
    given_["a"] = 2
    message.set_int_property("b", 3)
    assert message.properties == {"a": 1, "b": 3} and given_ == {"a": 2}


def test_the_delivery_count_begins_at_one_follows_redeliveries_and_cant_be_set() -> None:
    message = received(Message(), Source(a=1))
    assert message.get_int_property("JMSXDeliveryCount") == 1
    assert message.property_exists("JMSXDeliveryCount") and "JMSXDeliveryCount" in message.get_property_names()
    early, late = received(Message()), received(Message())
    early._redelivery(3)
    assert late.get_int_property("JMSXDeliveryCount") == 1 and late.jms_redelivered is False
    late._redelivery(3)
    for again in (early, late):
        assert again.get_int_property("JMSXDeliveryCount") == 3 and again.jms_redelivered is True
    with pytest.raises(IllegalArgumentError):
        Message().set_int_property("JMSXDeliveryCount", 5)


def test_group_properties_are_the_client_s() -> None:
    message = Message()
    message.set_string_property("JMSXGroupID", "g")
    message.set_int_property("JMSXGroupSeq", 1)
    assert message.properties == {"JMSXGroupID": "g", "JMSXGroupSeq": 1}


def test_the_source_is_asked_once_and_late() -> None:
    source = Source(a=1)
    message = received(TextMessage("x"), source)
    assert message.text == "x" and source.asked == []
    assert message.get_int_property("a") == message.properties["a"] == 1
    assert message.property_exists("a") and "b" not in message.properties
    with pytest.raises(KeyError, match="b"):
        message.properties["b"]
    assert source.asked == ["a", "a", "a", "b", "b"]
    assert dict(message.properties) == {"a": 1, "JMSXDeliveryCount": 1} and "a" in message.properties
    assert source.asked[5:] == ["properties"]
    assert message.jms_type is None and message.jms_priority == 4
    assert source.asked[6:] == ["headers"]


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True).map("p_".__add__), st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(),
    st.integers(-128, 127).map(Byte), st.floats(width=32, allow_nan=False).map(Float),
)))  # fmt: skip
def test_bulk_and_single_agree(values: dict[str, Any]) -> None:
    bulk, single = Message(properties=values), Message()
    for name, value in values.items():
        single.set_object_property(name, value)
    assert [(name, type(value), value) for name, value in bulk.properties.items()] == [
        (name, type(value), value) for name, value in single.properties.items()
    ]


def test_the_delivery_count_of_this_client_goes_before_the_brokers() -> None:
    message = received(Message(), Source(JMSXDeliveryCount=1))
    message._redelivery(3)
    assert message.get_int_property("JMSXDeliveryCount") == 3


def test_properties_put_later_replace_those_put_earlier() -> None:
    message = Message(properties={"a": 1, "b": 1})
    message._put_properties({"a": 2})
    assert dict(message.properties) == {"a": 2, "b": 1}
