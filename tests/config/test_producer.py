"""ProducerConfig: rules between its options."""

import pytest

from jmsaio.config import ProducerConfig
from jmsaio.errors import ConfigurationError


def test_chunking_needs_batching_to_be_off() -> None:
    assert ProducerConfig(chunking_enabled=True, batching_enabled=False).chunking_enabled
    with pytest.raises(ConfigurationError, match=r"needs producerConfig\.batchingEnabled = False") as caught:
        ProducerConfig().merge({"chunkingEnabled": "true"})
    assert caught.value.key == "producerConfig.chunkingEnabled"


def test_properties_are_merged_name_by_name() -> None:
    base = ProducerConfig(properties={"a": "1", "b": "2"})
    assert base.changes({"properties.b": 3}) == {"properties": {"a": "1", "b": "3"}}
    assert base.merge({"properties": {"b": "3"}}).properties == {"a": "1", "b": "3"}


def test_changes_are_only_what_was_given() -> None:
    assert ProducerConfig().changes({"sendTimeoutMs": 5, "blockIfQueueFull": True}) == {"send_timeout": 0.005}
