"""Nested and dotted maps of options."""

import pytest

from jmsaio.config.declaring import directory as declared
from jmsaio.config.mapping import flatten, read_section, take_group
from jmsaio.config.options import Section
from jmsaio.errors import ConfigurationError


def test_nested_mappings_become_dotted_names_without_nulls() -> None:
    assert flatten({"a": {"b": {"c": 1}, "d": None}, "e.f": 2}) == {"a.b.c": 1, "e.f": 2}


def test_take_group_takes_both_forms() -> None:
    source: dict[str, object] = {"a": {"b": 1}, "a.c": 2, "ab": 3}
    assert take_group(source, "a") == {"b": 1, "c": 2}
    assert source == {"ab": 3}
    assert take_group(source, "a") is None
    with pytest.raises(ConfigurationError, match="group of options"):
        take_group({"a": 1}, "a")


def test_a_section_is_read_by_both_spellings_and_suggests_the_nearest_name() -> None:
    directory = declared(Section.CONSUMER)
    assert read_section(directory, {"ackTimeoutMillis": 5, "consumer_name": "n"}, "consumerConfig.") == {
        "ack_timeout": 0.005,
        "consumer_name": "n",
    }
    with pytest.raises(ConfigurationError, match=r"ackTimeoutMilis'; did you mean 'consumerConfig\.ackTimeoutMillis"):
        read_section(directory, {"ackTimeoutMilis": 5}, "consumerConfig.")
