"""The used parts of pulsar-client's objects, as protocols: ``_pulsar`` ships no type information.

They are for type checkers only: nothing asks at run time whether an object satisfies one. Configuration objects, which
we only build, are annotated with their own classes of ``_pulsar``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self, SupportsInt

#: ``_pulsar.Result``: its number says how an operation ended.
Result = SupportsInt
#: Native callback of an operation that makes no value.
OnResult = Callable[[Result], None]


class MessageIdHandle(Protocol):
    """``_pulsar.MessageId``."""

    def ledger_id(self) -> int:
        """Ledger, -1 for none."""

    def entry_id(self) -> int:
        """Entry in the ledger, -1 for none."""

    def partition(self) -> int:
        """Partition, -1 for none."""

    def batch_index(self) -> int:
        """Index in the batch, -1 for none."""

    def serialize(self) -> bytes:
        """Pulsar's ``MessageIdData``."""

    def __le__(self, other: Self, /) -> bool: ...

    def __gt__(self, other: Self, /) -> bool: ...


class MessageHandle(Protocol):
    """``_pulsar.Message``, received."""

    def data(self) -> bytes:
        """Body; empty for a null value, too."""

    def has_null_value(self) -> bool:
        """Whether the body is Pulsar's null value."""

    def properties(self) -> dict[str, str]:
        """A new dictionary of the properties. Raises UnicodeDecodeError."""

    def partition_key(self) -> str:
        """Key, "" for none. Raises UnicodeDecodeError."""

    def event_timestamp(self) -> int:
        """Milliseconds since the epoch, 0 for none."""

    def publish_timestamp(self) -> int:
        """Milliseconds since the epoch."""

    def message_id(self) -> MessageIdHandle:
        """A new id object."""

    def topic_name(self) -> str:
        """Full name of the topic or partition."""

    def length(self) -> int:
        """Bytes of the body."""

    def redelivery_count(self) -> int:
        """Number of deliveries by the broker before this one."""

    def producer_name(self) -> str:
        """Name of the producer. Raises UnicodeDecodeError."""

    def schema_version(self) -> str:
        """Version of the producer's schema, bytes taken for UTF-8, "" for none. Raises UnicodeDecodeError."""


#: Native callback of a receive; the message means nothing where the result is not Ok.
OnMessage = Callable[[Result, MessageHandle], None]


class ClosableHandle(Protocol):
    """A consumer, reader or producer that pulsar-client opened."""

    def close_async(self, callback: OnResult, /) -> None:
        """Close it."""


class LinkedHandle(Protocol):
    """A consumer or producer, as far as its connection is concerned."""

    def is_connected(self) -> bool:
        """Whether it has a connection now; of several topics: whether all have one."""

    def topic(self) -> str:
        """Full name of the topic or partition."""


class SettlingHandle(Protocol):
    """A consumer, as far as records are settled with it."""

    def acknowledge_async(self, message: MessageHandle | MessageIdHandle, callback: None, /) -> None:
        """Acknowledge a message, or what an id stands for."""

    def negative_acknowledge(self, message: MessageHandle | MessageIdHandle, /) -> None:
        """Give back a message, or what an id stands for."""


class SettlingConsumerHandle(ClosableHandle, SettlingHandle, Protocol):
    """A consumer that only settles records."""


class WatchedConsumerHandle(LinkedHandle, Protocol):
    """A consumer, as far as its connection is watched."""

    def consumer_name(self) -> str:
        """Its name, which pulsar-client makes up if it was given none."""

    def get_last_message_id_async(self, callback: Callable[[Result, MessageIdHandle], None], /) -> None:
        """Ask the broker for the id of the last message of the topic."""


class ConsumerHandle(SettlingConsumerHandle, WatchedConsumerHandle, Protocol):
    """``_pulsar.Consumer``."""

    def receive_async(self, callback: OnMessage, /) -> None:
        """Receive one message; the callback is called inside this call when one is there."""

    def receive(self, timeout: int, /) -> MessageHandle:
        """Receive one message, within a time limit in milliseconds. Raises ``_pulsar.Timeout``."""

    def seek_async(self, position: MessageIdHandle | int, callback: OnResult, /) -> None:
        """Move the subscription to an id, or to a publish time in milliseconds."""

    def unsubscribe_async(self, callback: OnResult, /) -> None:
        """Delete the subscription."""


class ReaderHandle(ClosableHandle, Protocol):
    """``_pulsar.Reader``."""

    def read_next_async(self, callback: OnMessage, /) -> None:
        """Read one message; the callback is called inside this call when one is there."""

    def read_next(self, timeout: int, /) -> MessageHandle:
        """Read one message, within a time limit in milliseconds. Raises ``_pulsar.Timeout``."""

    def seek_async(self, position: MessageIdHandle | int, callback: OnResult, /) -> None:
        """Move to an id, or to a publish time in milliseconds."""

    def has_message_available_async(self, callback: Callable[[Result, bool], None], /) -> None:
        """Ask whether something is stored behind the last message read."""


class ProducerHandle(ClosableHandle, LinkedHandle, Protocol):
    """``_pulsar.Producer``."""

    def send_async(self, message: object, callback: Callable[[Result, MessageIdHandle], None] | None, /) -> None:
        """Send what ``_pulsar.MessageBuilder`` built; no callback: no one asks for the outcome."""

    def last_sequence_id(self) -> int:
        """Last sequence id that the broker confirmed, or knew when it was opened; -1 for none."""


class ClosableClientHandle(Protocol):
    """A client, as far as it is closed."""

    def close(self) -> None:
        """Close it, and wait until its threads have ended. Raises ``_pulsar.PulsarException``."""


class SubscribingClientHandle(Protocol):
    """A client, as far as it subscribes and reads."""

    def get_topic_partitions_async(self, topic: str, callback: Callable[[Result, Sequence[str]], None], /) -> None:
        """Look up the full names of a topic's partitions, or its own name if it has none."""

    def subscribe_async_v2(
        self, topic: object, subscription: str, configuration: object, callback: Callable[..., None], /
    ) -> None:
        """Open a consumer of a topic, or of the topics that a ``_pulsar.TopicRegex`` matches.

        ``configuration``: ``_pulsar.ConsumerConfiguration``.
        """

    def create_reader_async_v2(
        self, topic: str, start: MessageIdHandle, configuration: object, callback: Callable[..., None], /
    ) -> None:
        """Open a reader; ``configuration``: ``_pulsar.ReaderConfiguration``."""


class ClientHandle(ClosableClientHandle, SubscribingClientHandle, Protocol):
    """``_pulsar.Client``. The ``v2`` methods call back with what they opened, or with a ``_pulsar.Error``."""

    def create_producer_async_v2(self, topic: str, configuration: object, callback: Callable[..., None], /) -> None:
        """Open a producer; ``configuration``: ``_pulsar.ProducerConfiguration``."""
