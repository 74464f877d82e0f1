"""Typed properties on the command line: ``-p amount:int=5``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import click

from jmsaio.codec.schemas.reading import json_text
from jmsaio.errors import JMSError
from jmsaio.model.arguments import shown
from jmsaio.model.values import Byte, Char, Double, Float, Int, Long, Short


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("write true or false")
    return text.lower() == "true"


#: Parsers of a property's text by type name.
TYPES: Mapping[str, Callable[[str], bool | int | float | str]] = {
    "string": str,
    "boolean": _boolean,
    "byte": lambda text: Byte(int(text)),
    "short": lambda text: Short(int(text)),
    "int": lambda text: Int(int(text)),
    "long": lambda text: Long(int(text)),
    "float": lambda text: Float(float(text)),
    "double": lambda text: Double(float(text)),
}


def parse_property(text: str) -> tuple[str, bool | int | float | str]:
    """Parse ``name=value`` (a string) or ``name:type=value`` into name and value.

    Raises:
        click.UsageError: ``=`` is missing, the type is unknown, or the value is not valid for the type.
    """
    name, equals, value = text.partition("=")
    name, colon, kind = name.partition(":")
    if not equals or not name:
        raise click.UsageError(f"property {shown(text)} is not name=value or name:type=value")
    reader = TYPES.get(kind if colon else "string")
    if reader is None:
        raise click.UsageError(f"property {shown(text)}: type {shown(kind)} is not one of {', '.join(TYPES)}")
    try:
        return name, reader(value)
    except (ValueError, OverflowError, JMSError) as error:
        raise click.UsageError(f"property {shown(name)}: {shown(value)} is not a valid {kind}: {error}") from None


def typed(value: Any, kind: str | None) -> Any:
    """Convert a JSON value to the type named ``kind``; None keeps the type that JSON has.

    Raises:
        ValueError: the type is unknown, or the value is not valid for it.
    """
    if kind is None or value is None:
        return value
    if kind == "char":
        return Char(value)
    reader = TYPES.get(kind)
    if reader is None:
        raise ValueError(f"type {shown(kind)} is not one of {', '.join(TYPES)}")
    return reader(str(value).lower() if isinstance(value, bool) else str(value))


def plain(value: Any) -> Any:
    """Convert a property's or body's value to JSON; NaN and infinities become Java's text for them.

    In a body decoded by a schema, nested bytes become Base64, and decimals, dates and times become text.
    """
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bytes | date | time | Decimal):
        return json_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value


def mark(value: object) -> str | None:
    """Return the name of the value's type if JSON can't express it, else None."""
    for kind in (Byte, Short, Long, Float, Char, Decimal, datetime, date, time):
        if isinstance(value, kind):
            return kind.__name__.lower()
    return "double" if isinstance(value, float) and not math.isfinite(value) else None
