"""Places between messages."""

from __future__ import annotations

import pytest

from jmsaio.errors import ConfigurationError
from jmsaio.model.wire import WireId
from jmsaio.spark.model.place import Place, parse_place, place_of


@pytest.mark.parametrize(
    "place", [Place(0, 0), Place(12, 3), Place(12, 3, 4), Place(2**63 - 1, 2**63 - 1, 999_999_999)]
)
def test_a_place_is_read_back_from_its_text(place: Place) -> None:
    assert parse_place(str(place), "option x") == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1:",
        ":1",
        "1:2:",
        "-1:2",
        "1:2:3:4",
        " 1:2",
        "1:2 ",
        "\u0661:2",
        "9223372036854775808:1",
        "1:9223372036854775808",
    ],
)
def test_another_text_is_refused_with_where_it_was_given(text: str) -> None:
    with pytest.raises(ConfigurationError, match="option x: a position is written ledger:entry") as refused:
        parse_place(text, "option x")
    assert repr(text) in str(refused.value)


def test_a_place_sorts_like_the_messages_of_a_partition() -> None:
    ids = [WireId(1, 9, 0, 1), WireId(2, 0), WireId(2, 0, 3, 1), WireId(2, 1)]
    assert sorted(map(place_of, reversed(ids))) == list(map(place_of, ids))
    assert place_of(WireId(1, 2)) == place_of(WireId(1, 2, 5, 0)) == Place(1, 2)
