"""Java's text forms, the conversion tables, and modified UTF-8."""

from __future__ import annotations

import math
import struct
from decimal import Decimal, localcontext
from itertools import product

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import JMSError, MessageFormatError, NullValueError, NumberFormatError
from jmsaio.model.text import (
    READABLE_AS,
    convert,
    decode_mutf8,
    encode_mutf8,
    parse_boolean,
    parse_double,
    parse_float,
    parse_integer,
    parse_wire,
    to_java,
)
from jmsaio.model.values import TYPE_NAMES, Byte, Char, Float, Long, Short, Value
from tests.model.support import BY_NAME, PROPERTY_TYPES, READABLE, SAMPLES, expected

DOUBLES = {
    0.0: "0.0", 1.0: "1.0", 100.0: "100.0", 0.001: "0.001", 0.0009999: "9.999E-4", 1e-4: "1.0E-4",
    9999999.0: "9999999.0", 1e7: "1.0E7", 12345678.9: "1.23456789E7", 1e10: "1.0E10", 1e23: "1.0E23",
    2e-3: "0.002", 3.4028234663852886e38: "3.4028234663852886E38", 5e-324: "4.9E-324", 2e-323: "2.0E-323",
    1.7976931348623157e308: "1.7976931348623157E308", 2.2250738585072014e-308: "2.2250738585072014E-308",
    0.1: "0.1", 1 / 3: "0.3333333333333333", 123456.0: "123456.0", 9007199254740992.0: "9.007199254740992E15",
    1.3: "1.3", -1.5: "-1.5", -1e-5: "-1.0E-5", math.inf: "Infinity", -math.inf: "-Infinity",
}  # fmt: skip
FLOATS = {
    1.1: "1.1", 3.4028235e38: "3.4028235E38", 1.4e-45: "1.4E-45", 1.17549435e-38: "1.1754944E-38",
    1e-3: "0.001", 1e7: "1.0E7", 9999999.0: "9999999.0", 16777216.0: "1.6777216E7", 1e10: "1.0E10", 0.1: "0.1",
    3.3: "3.3", 2.0**-20: "9.536743E-7", 2.0**-24: "5.9604645E-8", 2.0**23: "8388608.0", 8.41e21: "8.41E21",
    2.0**-96: "1.2621775E-29", 2.0**87: "1.5474251E26", 4.9e-44: "4.9E-44", 5e-44: "5.0E-44", 33554432.0: "3.3554432E7",
}  # fmt: skip


@pytest.mark.parametrize(("value", "text"), DOUBLES.items())
def test_text_of_doubles(value: float, text: str) -> None:
    assert to_java(value) == text


@pytest.mark.parametrize(("value", "text"), FLOATS.items())
def test_text_of_floats(value: float, text: str) -> None:
    assert to_java(Float(value)) == text
    assert to_java(Float(-value)) == "-" + text


def test_text_of_zeros_and_nan() -> None:
    assert [to_java(kind(value)) for kind in (Float, float) for value in (-0.0, 0.0, math.nan)] == [
        "-0.0", "0.0", "NaN", "-0.0", "0.0", "NaN",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (False, "false"), (Byte(-1), "-1"), (Long(2**62), str(2**62)), ("é", "é"), (Char("x"), "x")],
)
def test_text_of_others(value: Value, text: str) -> None:
    assert to_java(value) == text and type(to_java(value)) is str


@pytest.mark.parametrize("value", [None, b""])
def test_no_text_form(value: Value) -> None:
    with pytest.raises(MessageFormatError):
        to_java(value)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float_text_is_read_back_and_the_shortest(value: float) -> None:
    text = to_java(Float(value))
    assert struct.pack(">f", parse_float(text)) == struct.pack(">f", value)
    digits = len(text.lstrip("-").partition("E")[0].replace(".", "").strip("0"))
    for fewer in range(2, digits):
        rounded = f"{value:.{fewer - 1}e}"
        assert parse_float(rounded) != value, f"{rounded} is shorter than {text}"


@given(st.floats(allow_nan=False))
def test_double_text_is_read_back(value: float) -> None:
    assert struct.pack(">d", parse_double(to_java(value))) == struct.pack(">d", value)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("-0", 0), ("+5", 5), ("007", 7), ("127", 127), ("-128", -128), ("٣", 3), ("-٣٤", -34), ("१२", 12),
     ("１", 1), ("٣1", 31), ("0" * 2000 + "5", 5), ("-" + "0" * 40, 0)],
)  # fmt: skip
def test_a_whole_number_is_read_as_java_reads_it(text: str, value: int) -> None:
    for bits in (8, 16, 32, 64):
        assert parse_integer(text, bits) == value


@pytest.mark.parametrize(
    "text",
    ["", "+", "-", "+-1", "--1", " 1", "1 ", "1_0", "0x10", "1L", "1.0", "1e3", "²", "Ⅷ", "𝟙", "one", "\x001", "1\n",
     None, "9" * 20, pytest.param("9" * 1_000_000, id="huge")],
)  # fmt: skip
def test_not_whole_numbers(text: str | None) -> None:
    with pytest.raises(NumberFormatError) as caught:
        parse_integer(text, 64)
    assert isinstance(caught.value, ValueError) and not isinstance(caught.value, JMSError)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_limits_of_whole_numbers(bits: int) -> None:
    limit = 2 ** (bits - 1)
    assert parse_integer(str(limit - 1), bits) == limit - 1
    assert parse_integer("0" * 30 + str(limit - 1), bits) == limit - 1
    assert parse_integer(str(-limit), bits) == -limit
    for value in (limit, -limit - 1):
        with pytest.raises(NumberFormatError, match=f"{bits} bits"):
            parse_integer(str(value), bits)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.", 1.0), (".5", 0.5), ("+.5", 0.5), ("1.e2", 100.0), ("1e5f", 1e5), ("1F", 1.0), ("1d", 1.0), ("\t 1 \n", 1.0),
     ("\x001\x1f", 1.0), ("Infinity", math.inf), ("-Infinity", -math.inf), ("+Infinity", math.inf), ("1e400", math.inf),
     ("-1e400", -math.inf), ("1e-400", 0.0), ("0x1p3", 8.0), ("0x.8p1", 1.0), ("0x1.p1", 2.0), ("0x1.8P-2f", 0.375),
     ("0x1p0000000000001", 2.0), ("0x1p-00000000000000005", 0.03125), ("0x1p99999999999", math.inf),
     ("0x1p-99999999999", 0.0), ("0x1p-1074", 5e-324), ("1e2147483648", math.inf), ("1e-2147483649", 0.0)],
)  # fmt: skip
def test_doubles_are_read_as_java_reads_them(text: str, value: float) -> None:
    assert parse_double(text) == value


@pytest.mark.parametrize(
    "text",
    ["", " ", ".", "1e", "1e+", "1fd", "nan", "NaNf", "infinity", "inf", "1_0", "1,0", "\xa01", "0x1", "0x1p", "0x.p1",
     "٣", "1e٣", "1 1", "--1", None],
)  # fmt: skip
def test_text_that_java_reads_as_no_double_is_refused(text: str | None) -> None:
    for read in (parse_double, parse_float):
        with pytest.raises(NumberFormatError):
            read(text)


def test_nan_and_minus_zero_are_read() -> None:
    assert all(math.isnan(parse_double(text)) for text in ("NaN", "+NaN", "-NaN", " NaN "))
    assert all(math.copysign(1, parse_double(text)) == -1 for text in ("-0", "-0.0", "-0x0p0", "-1e-999"))


@pytest.mark.parametrize(
    ("first", "last"), [("", "x"), ("0x", ""), ("1e", "x"), (".", "x"), ("0x.", ""), ("0x1p", "x")]
)
def test_a_long_text_is_refused_in_one_pass(first: str, last: str) -> None:
    with pytest.raises(NumberFormatError):
        parse_double(first + "1" * 300_000 + last)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.00000017881393432617187499", 1.0000001192092896),
        ("1.00000017881393432617187500", 1.000000238418579),
        ("1.00000017881393432617187501", 1.000000238418579),
        ("1.000000059604644775390625", 1.0),
        ("1.0000000596046447753906250000000000001", 1.0000001192092896),
        ("-1.0000000596046447753906250000000000001", -1.0000001192092896),
        ("0x1.000001p0", 1.0),
        ("0x1.00000100000000001p0", 1.0000001192092896),
        ("-0x1.00000100000000001p0", -1.0000001192092896),
        ("0x10000010000000000000000000000001p-124", 1.0000001192092896),
        ("3.40282356779733661637539395458142568447e38", 3.4028234663852886e38),
        ("3.40282356779733661637539395458142568448e38", math.inf),
        ("0.70064923216240853546186479164495806564013097093825788587853e-45", 0.0),
        ("0.70064923216240853546186479164495806564013097093825788587854e-45", 1.401298464324817e-45),
        ("0x1p-150", 0.0),
        ("0x1.0000000001p-150", 1.401298464324817e-45),
    ],
)
def test_floats_are_rounded_once(text: str, value: float) -> None:
    found = parse_float(text)
    assert found == value and type(found) is Float


@given(st.integers(1, 0x7F7FFFFE), st.sampled_from([-1, 0, 1]), st.integers(18, 60))
def test_between_two_floats(bits: int, side: int, digits: int) -> None:
    below, above = (Decimal(struct.unpack(">f", struct.pack(">I", bits + step))[0]) for step in (0, 1))
    with localcontext() as context:
        context.prec = 400
        middle = (below + above) / 2
        text = str(middle + side * middle.scaleb(-digits))
    even = below if bits % 2 == 0 else above
    assert Decimal(parse_float(text)) == {-1: below, 0: even, 1: above}[side]


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("TRUE", True), ("tRuE", True), (" true", False), ("true ", False), ("1", False), ("yes", False),
     ("", False), (None, False), ("ＴＲＵＥ", False)],
)  # fmt: skip
def test_only_true_in_any_case_is_true(text: str | None, value: bool) -> None:
    assert parse_boolean(text) is value


@pytest.mark.parametrize(
    ("text", "mark", "value"),
    [("true", "boolean", True), ("no", "boolean", False), ("-1", "byte", Byte(-1)), ("300", "short", Short(300)),
     ("5", "int", 5), ("-5", "int", -5), ("2147483647", "int", 2**31 - 1), ("5", "integer", 5), ("5", "long", Long(5)),
     ("1.1", "float", Float(1.1)), ("1.5", "double", 1.5), ("x", "string", "x"), ("5", "null", "5"), ("5", "INT", "5")],
)  # fmt: skip
def test_a_wire_value_has_the_type_of_its_mark(text: str, mark: str, value: Value) -> None:
    found = parse_wire(text, mark)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "mark"),
    [("five", "int"), ("", "int"), ("2147483648", "int"), ("1_0", "int"), ("²", "int"), ("128", "byte"),
     ("40000", "short"), ("", "integer"), ("9223372036854775808", "long"), ("inf", "float"), ("", "double")],
)  # fmt: skip
def test_bad_wire_values(text: str, mark: str) -> None:
    with pytest.raises(MessageFormatError, match=mark):
        parse_wire(text, mark)


MARKS = [kind for kind in SAMPLES if kind not in (Char, bytes)]
VALUES = st.one_of(
    st.booleans(),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.floats(width=32, allow_nan=False).map(Float),
    st.floats(allow_nan=False),
    st.text(),
)


@given(VALUES)
def test_every_value_comes_back_from_the_wire(value: Value) -> None:
    found = parse_wire(to_java(value), TYPE_NAMES[type(value)])
    assert found == value and type(found) is type(value)


@given(st.text(), st.sampled_from([TYPE_NAMES[kind] for kind in MARKS]))
def test_any_text_is_a_value_or_a_clear_error(text: str, mark: str) -> None:
    try:
        parse_wire(text, mark)
    except MessageFormatError as error:
        assert mark in str(error)


WHOLE = [Byte, Short, int, Long]
FLOATING = [Float, float]


@pytest.mark.parametrize(("source", "target"), list(product(PROPERTY_TYPES, PROPERTY_TYPES)))
def test_properties_convert_as_the_table_of_jms_says(source: type, target: type) -> None:
    if target in READABLE[source]:
        assert convert(SAMPLES[source], target, "p", "property") == expected(source, target)
    else:
        article, names = "an" if source is int else "a", f"{TYPE_NAMES[source]}.*{TYPE_NAMES[target]}"
        with pytest.raises(MessageFormatError, match=rf"property 'p' is {article} {names}"):
            convert(SAMPLES[source], target, "p", "property")


@pytest.mark.parametrize(("source", "target"), list(product(SAMPLES, SAMPLES)))
def test_bodies_convert_as_the_table_of_jms_says(source: type, target: type) -> None:
    if target in READABLE[source]:
        assert convert(SAMPLES[source], target) == expected(source, target)
    else:
        with pytest.raises(MessageFormatError):
            convert(SAMPLES[source], target)


def test_the_table_itself() -> None:
    assert {source: set(targets) for source, targets in READABLE_AS.items()} == READABLE


@pytest.mark.parametrize("target", [*WHOLE, *FLOATING])
@pytest.mark.parametrize("text", ["mytest string", "", "1 0", "1_0", "0x"])
def test_texts_that_are_no_numbers(target: type, text: str) -> None:
    with pytest.raises(NumberFormatError) as caught:
        convert(text, target)
    assert not isinstance(caught.value, JMSError)


@pytest.mark.parametrize(("text", "target"), [("128", "byte"), ("32768", "short"), (str(2**31), "int")])
def test_texts_out_of_range(text: str, target: str) -> None:
    with pytest.raises(NumberFormatError):
        convert(text, BY_NAME[target])


def test_null_converts_as_javas_valueof_does() -> None:
    assert convert(None, bool) is False
    assert convert(None, str) is None
    assert convert(None, bytes) is None
    for target in WHOLE:
        with pytest.raises(NumberFormatError):
            convert(None, target)
    for target in (*FLOATING, Char):
        with pytest.raises(NullValueError) as caught:
            convert(None, target)
        assert isinstance(caught.value, TypeError) and not isinstance(caught.value, JMSError)


@pytest.mark.parametrize("value", [0, 1, -1])
def test_no_number_is_a_boolean_and_no_int_a_double(value: int) -> None:
    for target in (bool, Short, *FLOATING):
        with pytest.raises(MessageFormatError):
            convert(value, target)


VECTORS = {
    "": "", "a": "61", "\x00": "c080", "\x7f": "7f", "\x80": "c280", "é": "c3a9", "\u07ff": "dfbf", "\u0800": "e0a080",
    "€": "e282ac", "\uffff": "efbfbf", "\U00010000": "eda080edb080", "\U0001f600": "eda0bdedb880", "\ud800": "eda080",
    "\udc00\ud800": "edb080eda080", "a\x00é\U0001f600": "61c080c3a9eda0bdedb880", "a\x00b": "61c08062",
}  # fmt: skip


@pytest.mark.parametrize(("text", "data"), VECTORS.items())
def test_the_vectors_are_encoded_and_decoded(text: str, data: str) -> None:
    assert encode_mutf8(text).hex() == data
    assert decode_mutf8(bytes.fromhex(data)) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [("00", "\x00"), ("00c3a9", "\x00é"), ("c181", "A"), ("e08181", "A"), ("c1bf", "\x7f"), ("e08080", "\x00")],
)
def test_forms_that_java_reads_and_never_writes(data: str, text: str) -> None:
    assert decode_mutf8(bytes.fromhex(data)) == text


@pytest.mark.parametrize(
    "data", ["80", "bf", "c3", "c341", "e2", "e282", "e28241", "e24180", "f09f9880", "f0", "ff", "fe", "61f8",
        "c3a9f09f9880",
             "ed", "eda0", "c0", "c0c080", "e0c080"]
)  # fmt: skip
def test_malformed_modified_utf_8_is_refused(data: str) -> None:
    with pytest.raises(MessageFormatError, match="modified UTF-8"):
        decode_mutf8(bytes.fromhex(data))


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_survives_and_no_byte_is_zero(text: str) -> None:
    """Two lone surrogates that happen to be a pair come back as the character that they are for Java."""
    joined = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    data = encode_mutf8(text)
    assert decode_mutf8(data) == joined and b"\x00" not in data


@given(st.binary())
def test_any_bytes_give_a_text_or_a_clear_error(data: bytes) -> None:
    try:
        decode_mutf8(data)
    except MessageFormatError as error:
        assert "modified UTF-8" in str(error)
