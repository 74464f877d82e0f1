"""Typed properties on the command line and their way through JSON."""

import json
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import click
import pytest

from jmsaio import Byte, Double, Float, Int, Long, Short
from jmsaio.cli.typed import TYPES, mark, parse_property, plain, typed


@pytest.mark.parametrize(
    ("text", "name", "value", "kind"),
    [
        ("a=b", "a", "b", str),
        ("a=", "a", "", str),
        ("a=b=c", "a", "b=c", str),
        ("a=x:y", "a", "x:y", str),
        ("a:string=5", "a", "5", str),
        ("a:boolean=TRUE", "a", True, bool),
        ("a:byte=-128", "a", -128, Byte),
        ("a:short=7", "a", 7, Short),
        ("a:int=5", "a", 5, Int),
        ("a:long=99999999999", "a", 99999999999, Long),
        ("a:float=1.5", "a", 1.5, Float),
        ("a:double=1e300", "a", 1e300, Double),
    ],
)
def test_a_property_is_read_with_its_type(text: str, name: str, value: Any, kind: type) -> None:
    found = parse_property(text)
    assert found == (name, value)
    assert isinstance(found[1], kind)


@pytest.mark.parametrize(
    "text", ["a", "=b", "a:nosuch=1", "a:int=x", "a:int=2147483648", "a:byte=128", "a:boolean=yes", ":int=5"]
)
def test_anything_but_a_property_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError):
        parse_property(text)


def test_every_type_comes_back_from_json() -> None:
    for kind, text in {"boolean": "true", "byte": "1", "short": "2", "long": "3", "float": "0.5"}.items():
        value = TYPES[kind](text)
        again = typed(plain(value), mark(value))
        assert (again, type(again)) == (value, type(value))
    assert math.isnan(typed(plain(math.nan), mark(math.nan)))
    assert plain(-math.inf) == "-Infinity"
    with pytest.raises(ValueError, match="not one of"):
        typed(1, "nosuch")


def test_values_that_a_schema_gives_become_json() -> None:
    noon = datetime(2024, 1, 2, 12, tzinfo=UTC)
    value = {"a": [b"\x01", Decimal("12.30"), {"day": date(2024, 1, 2)}], "at": time(3, 4), "now": noon}
    shown = {"a": ["AQ==", "12.30", {"day": "2024-01-02"}], "at": "03:04:00", "now": "2024-01-02T12:00:00+00:00"}
    assert json.loads(json.dumps(plain(value))) == shown
    marks = [mark(each) for each in (Decimal(1), noon, date(2024, 1, 2), time(3), [1], {"a": 1})]
    assert marks == ["decimal", "datetime", "date", "time", None, None]
    with pytest.raises(ValueError, match="type 'decimal' is not one of"):
        typed("12.30", "decimal")
