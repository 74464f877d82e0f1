"""The fields of log records: their table is the guide's, and none hides an attribute that every record has."""

from __future__ import annotations

import inspect
import logging
import re
from importlib.resources import files

import jmsaio
from jmsaio.model.log_fields import FIELDS, log_fields


def test_only_what_is_known_becomes_a_field() -> None:
    assert log_fields() == {}
    assert log_fields(connection="c", session=2, subscription="s", message_id="ID:1", attempt=3) == {
        "jms_connection": "c", "jms_session": 2, "jms_subscription": "s", "jms_message_id": "ID:1", "jms_attempt": 3,
    }  # fmt: skip
    assert log_fields(destination=jmsaio.Queue("orders")) == log_fields(destination="orders")


def test_each_field_has_a_meaning_and_can_be_given() -> None:
    given = inspect.signature(log_fields).parameters
    assert [f"jms_{name}" for name in given] == list(FIELDS)
    assert set(log_fields(**dict.fromkeys(given, "x"))) == set(FIELDS)  # type: ignore[arg-type]  # any value is passed on


def test_no_field_is_an_attribute_of_every_record() -> None:
    """``logging`` refuses those."""
    assert not set(FIELDS) & {*vars(logging.makeLogRecord({})), "message", "asctime"}


def test_the_guide_has_the_table() -> None:
    guide = (files("jmsaio") / "guide" / "observability.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| `(jms_\w+)` \| (.+) \|$", guide, re.MULTILINE)) == FIELDS
