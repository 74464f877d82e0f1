"""``ProducerConfig`` and ``ConsumerConfig``: how senders and receivers are made, with their special maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import attrs

from jmsaio.config.mapping import read_section, take_group
from jmsaio.config.options import Directory, Section
from jmsaio.config.table_streams import (
    ACK_TIMEOUT_BACKOFF,
    CONSUMER,
    DEAD_LETTER,
    NACK_BACKOFF,
    PRODUCER,
)
from jmsaio.config.values import given
from jmsaio.errors import ConfigurationError


def check_fields(target: object, directory: Directory) -> None:
    """Read every field of the frozen ``target`` as a given Python value; raises ConfigurationError."""
    for option in directory.options:
        if option.field:
            value = given(option, getattr(target, option.field))
            object.__setattr__(target, option.field, value)


def _names(properties: Mapping[str, str]) -> str:
    """The names only: a value may be a secret."""
    return repr(dict.fromkeys(properties, "***"))


_PRODUCER = Directory(PRODUCER)
_CONSUMER = Directory(CONSUMER)
_DEAD_LETTER = Directory(DEAD_LETTER)
_NACK_BACKOFF = Directory(NACK_BACKOFF)
_ACK_TIMEOUT_BACKOFF = Directory(ACK_TIMEOUT_BACKOFF)


@attrs.frozen(kw_only=True)
class ProducerConfig:
    """``producerConfig``: how a sender is made. Durations are seconds; the options are rows of the option table.

    Raises:
        ConfigurationError: a value that can't be used.
    """

    batching_enabled: bool = True
    batching_max_publish_delay: float = 0.001
    batching_max_messages: int = 1000
    batching_max_bytes: int = 131072
    send_timeout: float = 30.0
    max_pending_messages: int = 0
    compression_type: str = "NONE"
    chunking_enabled: bool = False
    producer_name: str | None = None
    access_mode: str = "Shared"
    initial_sequence_id: int | None = None
    batcher_builder: str = "DEFAULT"
    lazy_start_partitioned_producers: bool = False
    properties: Mapping[str, str] = attrs.field(factory=dict, repr=_names)

    def __attrs_post_init__(self) -> None:
        check_fields(self, _PRODUCER)
        if self.chunking_enabled and self.batching_enabled:
            reason = "option producerConfig.chunkingEnabled = True needs producerConfig.batchingEnabled = False"
            raise ConfigurationError(reason, key="producerConfig.chunkingEnabled")

    def merge(self, overrides: Mapping[str, object]) -> ProducerConfig:
        """A copy with ``overrides``: a map with Starlight's names (nested or dotted) or the fields' own.

        Raises:
            ConfigurationError: an unknown name or a value that can't be used.
        """
        changes: dict[str, Any] = read_section(_PRODUCER, overrides, "producerConfig.", self.properties)
        return attrs.evolve(self, **changes)


@attrs.frozen(kw_only=True)
class Backoff:
    """A delay that grows with each redelivery (Starlight 10).

    Attributes:
        min_delay: first delay in seconds.
        max_delay: longest delay in seconds.
        multiplier: growth with each redelivery, at least 1.

    Raises:
        ConfigurationError: a value that can't be used.
    """

    min_delay: float = 10.0
    max_delay: float = 600.0
    multiplier: float = 2.0

    def __attrs_post_init__(self) -> None:
        check_fields(self, _NACK_BACKOFF)
        if self.max_delay < self.min_delay:
            raise ConfigurationError(f"option maxDelayMs: {self.max_delay:g} s is below minDelayMs", key="maxDelayMs")

    def delay(self, count: int) -> float:
        """Seconds before redelivery number ``count`` (0 and below: the first delay)."""
        if count <= 0:
            return self.min_delay
        try:
            return min(self.min_delay * self.multiplier**count, self.max_delay)
        except OverflowError:
            return self.max_delay if self.min_delay > 0 else 0.0


@attrs.frozen(kw_only=True)
class DeadLetterPolicy:
    """When and where a message that fails again and again is moved (Starlight 10); shared and key-shared only.

    Attributes:
        max_redeliver_count: redeliveries before it is moved, at least 1.
        dead_letter_topic: full topic name, or a short one in ``jms.systemNamespace``; None:
            ``<topic>-<subscription>-DLQ``.
        initial_subscription_name: subscription that is made together with that topic, or None.
        retry_letter_topic: not built.

    Raises:
        ConfigurationError: a value that can't be used.
    """

    max_redeliver_count: int
    dead_letter_topic: str | None = None
    initial_subscription_name: str | None = None
    retry_letter_topic: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.max_redeliver_count is None:
            key = "consumerConfig.deadLetterPolicy.maxRedeliverCount"
            raise ConfigurationError(f"option {key} must be given, at least 1", key=key)
        check_fields(self, _DEAD_LETTER)


@attrs.frozen(kw_only=True)
class ConsumerConfig:
    """``consumerConfig``: how a receiver is made. Durations are seconds; the options are rows of the option table.

    Attributes:
        ack_timeout: a message not acknowledged in this time comes again; None: off.
        negative_ack_redelivery_delay: between deliveries of a message given back, each time the same; None: at once
            for ``max_local_redeliveries`` times, then 1 s doubling to 60 s.
        negative_ack_backoff: the same, growing; it counts before ``negative_ack_redelivery_delay``.
        ack_timeout_backoff: growing delay of messages not acknowledged in time; None: none.
        dead_letter: dead letter policy; None: a message is delivered again without end.

    Raises:
        ConfigurationError: a value that can't be used.
    """

    receiver_queue_size: int = 1000
    max_total_receiver_queue_size_across_partitions: int = 50000
    ack_timeout: float | None = None
    negative_ack_redelivery_delay: float | None = None
    negative_ack_backoff: Backoff | None = None
    ack_timeout_backoff: Backoff | None = None
    acknowledgements_group_time: float = 0.1
    ack_receipt_enabled: bool = False
    batch_index_ack_enabled: bool = True
    dead_letter: DeadLetterPolicy | None = None
    consumer_name: str | None = None
    priority_level: int = 0
    read_compacted: bool = False
    pattern_auto_discovery_period: float = 60.0
    regex_subscription_mode: str = "PersistentOnly"
    replicate_subscription_state: bool = False
    max_pending_chunked_message: int = 10
    auto_ack_oldest_chunked_message_on_queue_full: bool = False
    crypto_failure_action: str = "FAIL"
    use_schema: bool = False
    properties: Mapping[str, str] = attrs.field(factory=dict, repr=_names)

    def __attrs_post_init__(self) -> None:
        check_fields(self, _CONSUMER)
        for field, kind in _SPECIAL_TYPES.items():
            value = getattr(self, field)
            if isinstance(value, Mapping):
                object.__setattr__(self, field, self._special(field, value))
            elif value is not None and not isinstance(value, kind):
                raise ConfigurationError(f"option {field} needs a {kind.__name__}, a map or None", key=field)

    def merge(self, overrides: Mapping[str, object]) -> Self:
        """A copy with ``overrides``: a map with Starlight's names (nested or dotted) or the fields' own.

        Key by key; dead letter policy and both backoffs are replaced whole (Starlight 1.4).

        Raises:
            ConfigurationError: an unknown name or a value that can't be used.
        """
        changes: dict[str, Any] = {}
        rest = dict(overrides)
        for key, field in _SPECIAL_KEYS.items():
            given_as_field = rest.pop(field, None)
            group = take_group(rest, key)
            if group is not None:
                changes[field] = self._special(field, group)
            elif given_as_field is not None:
                changes[field] = given_as_field
        changes.update(read_section(_CONSUMER, rest, "consumerConfig.", self.properties))
        return attrs.evolve(self, **changes)

    @staticmethod
    def _special(field: str, group: Mapping[str, object]) -> Backoff | DeadLetterPolicy:
        if field == "dead_letter":
            values: dict[str, Any] = read_section(_DEAD_LETTER, group, Section.DEAD_LETTER.value)
            return DeadLetterPolicy(**{"max_redeliver_count": None, **values})
        directory = _NACK_BACKOFF if field == "negative_ack_backoff" else _ACK_TIMEOUT_BACKOFF
        steps: dict[str, Any] = read_section(directory, group, directory.options[0].section.value)
        return Backoff(**steps)


_SPECIAL_TYPES: dict[str, type[Backoff] | type[DeadLetterPolicy]] = {
    "dead_letter": DeadLetterPolicy,
    "negative_ack_backoff": Backoff,
    "ack_timeout_backoff": Backoff,
}
_SPECIAL_KEYS = {
    "deadLetterPolicy": "dead_letter",
    "negativeAckRedeliveryBackoff": "negative_ack_backoff",
    "ackTimeoutRedeliveryBackoff": "ack_timeout_backoff",
}
