"""JMS for asyncio: a Jakarta Messaging client for Apache Pulsar, wire-compatible with Starlight for JMS."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from jmsaio.errors import (
    AdminError,
    BrokerUnavailableError,
    ConfigurationError,
    ConsumerBusyError,
    ForkError,
    IllegalArgumentError,
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    MalformedMessageError,
    MessageEOFError,
    MessageFormatError,
    MessageNotReadableError,
    MessageNotWriteableError,
    MessageTooLargeError,
    NotFoundError,
    NullValueError,
    NumberFormatError,
    ObjectClosedError,
    OperationTimeoutError,
    ResourceAllocationError,
    SendError,
    SendInDoubtError,
    TransactionInDoubtError,
    TransactionInProgressError,
    TransactionRolledBackError,
    TransportError,
    UnsupportedOperationError,
)
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from jmsaio.model.messages.map_message import MapMessage
from jmsaio.model.messages.message import Message, TextMessage
from jmsaio.model.messages.object_message import JavaObject, ObjectMessage
from jmsaio.model.messages.sequential import BytesMessage, StreamMessage
from jmsaio.model.modes import AcknowledgeMode, DeliveryMode
from jmsaio.model.public import public
from jmsaio.model.schema import Schema
from jmsaio.model.values import Byte, Char, Double, Float, Int, Long, Short
from jmsaio.model.version import __version__
from jmsaio.model.wire import WireId
from jmsaio.selector import Selector

if TYPE_CHECKING:
    from jmsaio.client.browser import Enumeration, QueueBrowser
    from jmsaio.client.callbacks.completion import CompletionListener
    from jmsaio.client.callbacks.reports import ConnectionState, ExceptionListener, StateChange
    from jmsaio.client.connection import Connection, ConnectionMetaData, ConnectionStats
    from jmsaio.client.consumer import MessageConsumer, MessageListener
    from jmsaio.client.context import Context
    from jmsaio.client.factory import ConnectionFactory, connect
    from jmsaio.client.jms_producer import JMSProducer
    from jmsaio.client.lifetime.stats import ConsumerStats, ProducerStats
    from jmsaio.client.producer import MessageProducer
    from jmsaio.client.request import QueueRequestor, TopicRequestor
    from jmsaio.client.senders.pending import Receipt
    from jmsaio.client.session import Session

__all__ = [
    "AcknowledgeMode",
    "AdminError",
    "BrokerUnavailableError",
    "Byte",
    "BytesMessage",
    "Char",
    "CompletionListener",
    "ConfigurationError",
    "Connection",
    "ConnectionFactory",
    "ConnectionMetaData",
    "ConnectionState",
    "ConnectionStats",
    "ConsumerBusyError",
    "ConsumerStats",
    "Context",
    "DeliveryMode",
    "Destination",
    "Double",
    "Enumeration",
    "ExceptionListener",
    "Float",
    "ForkError",
    "IllegalArgumentError",
    "IllegalStateError",
    "Int",
    "InvalidClientIDError",
    "InvalidDestinationError",
    "InvalidSelectorError",
    "JMSError",
    "JMSProducer",
    "JMSSecurityError",
    "JavaObject",
    "Long",
    "MalformedMessageError",
    "MapMessage",
    "Message",
    "MessageConsumer",
    "MessageEOFError",
    "MessageFormatError",
    "MessageListener",
    "MessageNotReadableError",
    "MessageNotWriteableError",
    "MessageProducer",
    "MessageTooLargeError",
    "NotFoundError",
    "NullValueError",
    "NumberFormatError",
    "ObjectClosedError",
    "ObjectMessage",
    "OperationTimeoutError",
    "ProducerStats",
    "Queue",
    "QueueBrowser",
    "QueueRequestor",
    "Receipt",
    "ResourceAllocationError",
    "Schema",
    "Selector",
    "SendError",
    "SendInDoubtError",
    "Session",
    "Short",
    "StateChange",
    "StreamMessage",
    "TemporaryQueue",
    "TemporaryTopic",
    "TextMessage",
    "Topic",
    "TopicRequestor",
    "TransactionInDoubtError",
    "TransactionInProgressError",
    "TransactionRolledBackError",
    "TransportError",
    "UnsupportedOperationError",
    "WireId",
    "__version__",
    "connect",
]

#: Public names of the client, each with its module. They are imported on first use: each of Spark's many processes
#: would otherwise spend a quarter of a second on importing a client that it does not need.
_CLIENT: Final = {
    "CompletionListener": "callbacks.completion",
    "Connection": "connection",
    "ConnectionFactory": "factory",
    "ConnectionMetaData": "connection",
    "ConnectionState": "callbacks.reports",
    "ConnectionStats": "connection",
    "ConsumerStats": "lifetime.stats",
    "Context": "context",
    "Enumeration": "browser",
    "ExceptionListener": "callbacks.reports",
    "JMSProducer": "jms_producer",
    "MessageConsumer": "consumer",
    "MessageListener": "consumer",
    "MessageProducer": "producer",
    "ProducerStats": "lifetime.stats",
    "QueueBrowser": "browser",
    "QueueRequestor": "request",
    "Receipt": "senders.pending",
    "Session": "session",
    "StateChange": "callbacks.reports",
    "TopicRequestor": "request",
    "connect": "factory",
}

for _name in __all__:  # the client's modules do so themselves
    if _name not in _CLIENT and isinstance(globals()[_name], type):
        public(globals()[_name])

if not TYPE_CHECKING:  # with __getattr__, a type checker would accept every name

    def __getattr__(name: str) -> Any:
        if name not in _CLIENT:
            raise AttributeError(f"module 'jmsaio' has no attribute {shown(name)}")
        value = globals()[name] = getattr(import_module(f"jmsaio.client.{_CLIENT[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted(__all__)
