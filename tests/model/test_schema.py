"""A schema's definition is JSON, however it is given."""

from __future__ import annotations

from typing import Any

import pytest

import jmsaio
from jmsaio.model.schema import Schema, is_version


def test_a_definition_is_a_text_or_what_json_holds() -> None:
    assert Schema("AVRO", {"type": "int"}) == Schema("AVRO", '{"type": "int"}')
    assert Schema("AVRO", ["int", "null"]).definition == '["int", "null"]'
    assert jmsaio.Schema("STRING") == Schema("STRING", "")
    assert len({Schema("STRING"), Schema("STRING", properties={"a": "b"})}) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((5,), "type"), (("AVRO", 5), "a text, a dict or a list"), (("AVRO", {"a": b""}), "can't be written as JSON")],
)
def test_anything_else_is_refused(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(jmsaio.IllegalArgumentError, match=words):
        Schema(*arguments)


def test_a_version_is_a_long_that_is_not_negative() -> None:
    assert [is_version(version) for version in (b"", b"\xff", b"\x7f" + bytes(7), b"\x80" + bytes(7), bytes(9))] == [
        True, True, True, False, False,
    ]  # fmt: skip
