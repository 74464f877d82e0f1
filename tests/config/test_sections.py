"""ProducerConfig and ConsumerConfig: checks, and merging of overrides."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.config import Backoff, ConsumerConfig, DeadLetterPolicy, ProducerConfig
from jmsaio.errors import ConfigurationError


def test_overrides_of_a_destination_are_nested_text() -> None:
    base = ConsumerConfig(receiver_queue_size=5, properties={"a": "1", "b": "2"})
    merged = base.merge(
        {"ackTimeoutMillis": "15000", "deadLetterPolicy": {"maxRedeliverCount": "3"}, "properties": {"b": "3"}}
    )
    assert merged.receiver_queue_size == 5
    assert merged.ack_timeout == 15.0
    assert merged.dead_letter == DeadLetterPolicy(max_redeliver_count=3)
    assert merged.properties == {"a": "1", "b": "3"}
    assert base == ConsumerConfig(receiver_queue_size=5, properties={"a": "1", "b": "2"})


def test_special_maps_are_replaced_whole() -> None:
    base = ConsumerConfig(
        dead_letter=DeadLetterPolicy(max_redeliver_count=1, dead_letter_topic="d"),
        ack_timeout_backoff=Backoff(min_delay=1, max_delay=2),
    )
    merged = base.merge({"deadLetterPolicy.maxRedeliverCount": 2, "ackTimeoutRedeliveryBackoff": {"minDelayMs": 20000}})
    assert merged.dead_letter == DeadLetterPolicy(max_redeliver_count=2)
    assert merged.ack_timeout_backoff == Backoff(min_delay=20.0)
    assert base.merge({"ackTimeoutRedeliveryBackoff.multiplier": 3}).ack_timeout_backoff == Backoff(multiplier=3)
    policy = DeadLetterPolicy(max_redeliver_count=9)
    assert base.merge({"dead_letter": policy}).dead_letter == policy


def test_fields_own_names_take_seconds() -> None:
    assert ConsumerConfig().merge({"ack_timeout": 12}).ack_timeout == 12.0
    in_timedelta: dict[str, Any] = {"ack_timeout": timedelta(seconds=12)}
    assert ConsumerConfig(**in_timedelta).ack_timeout == 12.0
    assert ProducerConfig().merge({"send_timeout": 1, "compressionType": "zstd"}) == ProducerConfig(
        send_timeout=1, compression_type="ZSTD"
    )
    assert ConsumerConfig().merge({"ackTimeoutMillis": 0}).ack_timeout is None
    as_map: dict[str, Any] = {"dead_letter": {"maxRedeliverCount": 2}}
    assert ConsumerConfig(**as_map).dead_letter == DeadLetterPolicy(max_redeliver_count=2)


@pytest.mark.parametrize("value", ["5", "yes", "on", "no", 1, 0, "", "truefalse"])
def test_flags_that_are_neither_true_nor_false_are_refused(value: object) -> None:
    """Starlight takes them for false, which is the opposite of what some of them say."""
    with pytest.raises(ConfigurationError, match=r"consumerConfig\.readCompacted = .*: must be true or false"):
        ConsumerConfig().merge({"readCompacted": value})
    with pytest.raises(ConfigurationError, match="must be true or false"):
        ConsumerConfig(read_compacted=value)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("value", [True, "TRUE", "true", " True ", False, "false", "FALSE"])
def test_flags_are_true_or_false_in_any_case(value: object) -> None:
    expected = str(value).strip().lower() == "true"
    assert ConsumerConfig().merge({"readCompacted": value}).read_compacted is expected
    assert ConsumerConfig(read_compacted=value).read_compacted is expected  # type: ignore[arg-type]  # text is taken


@pytest.mark.parametrize(
    "overrides",
    [{"receiverQueueSize": -1}, {"receiverQueueSize": "x"}, {"nosuch": 1}, {"deadLetterPolicy": 5},
     {"deadLetterPolicy": {"maxRedeliverCount": 0}}, {"deadLetterPolicy": {"retryLetterTopic": "x"}},
     {"ackTimeoutRedeliveryBackoff": {"minDelayMs": 5, "maxDelayMs": 1}},
     {"negativeAckRedeliveryBackoff": {"minDelayMs": 5, "maxDelayMs": 1}},
     {"useSchema": "perhaps"},
     {"ack_timeout": 1, "ackTimeoutMillis": 1}, {"properties": 5}, {"properties": {"a": [1]}},
     {"receiver_queue_size": None}, {"consumerConfig": {}, "x": 1}, {"negativeAckRedeliveryDelayMicros": "nan"},
     {"dead_letter": 5}, {"cryptoFailureAction": "SEND"}],
)  # fmt: skip
def test_what_can_not_be_used_is_refused(overrides: dict[str, object]) -> None:
    if overrides == {"receiver_queue_size": None}:
        assert ConsumerConfig().merge(overrides) == ConsumerConfig()  # None in a map is "not given"
        with pytest.raises(ConfigurationError, match="must not be None"):
            ConsumerConfig(receiver_queue_size=None)  # type: ignore[arg-type]  # wrong input on purpose
        return
    with pytest.raises(ConfigurationError):
        ConsumerConfig().merge(overrides)


def test_backoff_grows_as_pulsars() -> None:
    assert [Backoff().delay(n) for n in (-1, 0, 1, 2, 6, 7, 10**9)] == [10, 10, 20, 40, 600, 600, 600]
    assert Backoff(min_delay=0, max_delay=5).delay(10**9) == 0.0


@given(st.floats(0, 100), st.floats(0, 1000), st.floats(1, 10), st.integers(-5, 5000))
def test_backoff_stays_within_its_bounds(low: float, more: float, multiplier: float, count: int) -> None:
    backoff = Backoff(min_delay=low, max_delay=low + more, multiplier=multiplier)
    assert low <= backoff.delay(count) <= low + more
    assert backoff.delay(count) <= backoff.delay(count + 1)


@pytest.mark.parametrize("kind", [ProducerConfig, ConsumerConfig])
def test_values_of_properties_are_not_shown(kind: type[ProducerConfig | ConsumerConfig]) -> None:
    """A property of a producer or consumer may be a secret: only its name is in the repr, and in an error."""
    assert "hidden" not in repr(kind(properties={"token": "hidden"}))
    assert "'token': '***'" in repr(kind(properties={"token": "hidden"}))
    with pytest.raises(ConfigurationError) as caught:
        kind(properties={"token": ["hidden"]})  # type: ignore[dict-item]  # what a caller may do
    assert "hidden" not in str(caught.value)


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
