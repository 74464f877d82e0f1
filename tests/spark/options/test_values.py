"""How the text of an option is read."""

from __future__ import annotations

import datetime
import enum

import pytest
from hypothesis import given, strategies as st

from jmsaio.spark.options import values


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


GOOD = [
    (values.number(), " 7 ", 7),
    (values.number(), str(2**63 - 1), 2**63 - 1),
    (values.number(9), "9", 9),
    (values.flag, " True", True),
    (values.flag, "false", False),
    (values.word_of(Colour), " Blue ", Colour.BLUE),
    (values.not_empty, " x ", " x "),
    (values.duration(), "500ms", 0.5),
    (values.duration(), "500 MS", 0.5),
    (values.duration(), "1.5", 1.5),
    (values.duration(), "0.1 s", 0.1),
    (values.duration(), "15m", 900.0),
    (values.duration(), "15 min", 900.0),
    (values.duration(), "1h", 3600.0),
    (values.duration(), "2 d", 172800.0),
    (values.duration(60), "60", 60.0),
    (values.time, "0", 0),
    (values.time, "1769860800000", 1769860800000),
    (values.time, "1970-01-01", 0),
    (values.time, "1970-01-01T01:00:00+01:00", 0),
    (values.time, "1970-01-01T00:00:01Z", 1000),
    (values.time, " 1970-01-01 00:00:01.5 ", 1500),
    (values.time, "1970-01-01T00:00:00.000001", 1),
    (values.time, "1970-01-01T00:00:00.001000", 1),
]


@pytest.mark.parametrize(("read", "text", "value"), GOOD)
def test_a_text_is_read_as_its_value(read: values.Reader, text: str, value: object) -> None:
    assert read(text) == value


BAD = [
    (values.number(), "", "must be a whole number, at least 1"),
    (values.number(), "0", "must be a whole number, at least 1"),
    (values.number(), "-1", "must be a whole number, at least 1"),
    (values.number(), "1.0", "must be a whole number, at least 1"),
    (values.number(), "٣", "must be a whole number, at least 1"),
    (values.number(), str(2**63), "must be a whole number, at least 1"),
    (values.number(9), "10", "must be a whole number, at least 1 and at most 9"),
    (values.flag, "1", "must be true or false"),
    (values.word_of(Colour), "green", "must be red or blue"),
    (values.not_empty, " ", "must not be empty"),
    (values.duration(), "soon", "must be a duration, such as 500 ms, 30 s or 15 min"),
    (values.duration(), "-1 s", "must be a duration, such as 500 ms, 30 s or 15 min"),
    (values.duration(), "0.000 s", "must be above 0"),
    (values.duration(60), "61", "must be at most 60 s; without a unit it is seconds"),
    (values.duration(60), "2 min", "must be at most 60 s"),
    (values.time, "", "is neither milliseconds since the epoch nor ISO 8601, such as 2026-01-31T12:00:00Z"),
    (values.time, "2026-02-30", "is neither milliseconds since the epoch nor ISO 8601, such as 2026-01-31T12:00:00Z"),
    (values.time, "-5", "is neither milliseconds since the epoch nor ISO 8601, such as 2026-01-31T12:00:00Z"),
    (values.time, str(2**63), "is neither milliseconds since the epoch nor ISO 8601, such as 2026-01-31T12:00:00Z"),
    (values.time, "1969-12-31T23:59:59Z", "is before 1970"),
]


@pytest.mark.parametrize(("read", "text", "why"), BAD)
def test_another_text_is_refused_with_the_reason(read: values.Reader, text: str, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        read(text)
    assert str(caught.value) == why


@given(st.datetimes(min_value=datetime.datetime(1970, 1, 1)))
def test_a_time_is_the_first_millisecond_that_is_not_before_it(moment: datetime.datetime) -> None:
    found = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=values.time(moment.isoformat()) - 1)
    assert found < moment
    assert moment - found <= datetime.timedelta(milliseconds=1)


def test_a_refusal_names_option_and_value_and_cuts_a_long_one() -> None:
    error = values.refuse("columns", "x" * 1000, "is long")
    assert str(error).startswith("option columns = 'xxx")
    assert str(error).endswith(": is long")
    assert len(str(error)) < 300
    assert error.key == "columns"


def test_a_time_is_written_in_utc() -> None:
    assert values.time_text(0) == "1970-01-01T00:00:00.000Z"
    assert values.time_text(None) is None
