"""How public names appear to users: as names of ``jmsaio``, without the arguments that only the library passes.

Names of Java's API and of other libraries, which some write out of habit, are answered with the name here. Java's
methods need no table: Python itself suggests ``create_session`` for ``createSession``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from jmsaio.model.arguments import shown

T = TypeVar("T")
K = TypeVar("K", bound=type)

_WITHOUT_ARGUMENTS = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)])


def public(value: T) -> T:
    """Present a class or function as a name of ``jmsaio``, in whichever module it is defined.

    ``typing.get_type_hints``, which frameworks call, would look there for the names in a class's annotations; they are
    replaced by what they mean in its own module.
    """
    if isinstance(value, type):
        _resolve_annotations(value)
    value.__module__ = "jmsaio"
    return value


def _resolve_annotations(kind: type) -> None:
    """Replace the annotations of a class that are texts by types; a class that is not loaded here remains a text.

    A private field whose type is imported for type checkers only becomes Any.
    """
    known = vars(sys.modules[kind.__module__])
    resolved = dict(kind.__annotations__)
    for name, annotation in kind.__annotations__.items():
        if isinstance(annotation, str):
            try:
                resolved[name] = eval(annotation, dict(known), dict(vars(kind)))  # our own source
            except NameError:
                resolved[name] = Any if name.startswith("_") else annotation
    kind.__annotations__ = resolved


def created_by(call: str) -> Callable[[K], K]:
    """Hide the constructor's arguments of a class whose objects only the library creates.

    ``help`` shows none, and names ``call``, which an application calls instead. The constructor itself stays as attrs
    generated it, as fast as before, and type checkers still check the library's own calls.
    """

    def hide(kind: K) -> K:
        construct: Callable[..., None] = kind.__init__  # type: ignore[misc]  # of this very class
        construct.__annotations__ = {}  # of private types
        construct.__doc__ = f"Not for applications, which call {call}."
        construct.__signature__ = _WITHOUT_ARGUMENTS  # type: ignore[attr-defined]  # inspect.signature reads it
        return kind

    return hide


_CLASSES: Final = {
    "ActiveMQConnectionFactory": "ConnectionFactory",
    "JMSConsumer": "MessageConsumer",
    "JMSContext": "Context",
    "PulsarConnectionFactory": "ConnectionFactory",
    "PulsarQueue": "Queue",
    "PulsarTopic": "Topic",
    "QueueConnection": "Connection",
    "QueueConnectionFactory": "ConnectionFactory",
    "QueueReceiver": "MessageConsumer",
    "QueueSender": "MessageProducer",
    "QueueSession": "Session",
    "RMQConnectionFactory": "ConnectionFactory",
    "TopicConnection": "Connection",
    "TopicConnectionFactory": "ConnectionFactory",
    "TopicPublisher": "MessageProducer",
    "TopicSession": "Session",
    "TopicSubscriber": "MessageConsumer",
}


def python_name(java: str, known: Collection[str]) -> str | None:
    """Return the name of a class of ``known`` that is ``java`` in Java, or None.

    An exception is called an error, whether it is checked (``JMSException``) or not (``JMSRuntimeException``).
    """
    found = _CLASSES.get(java)
    if found is None and java.endswith("Exception"):
        found = f"{java.removesuffix('Exception').removesuffix('Runtime')}Error"
    return found if found in known else None


_BODY: Final = "message.text, or message.get_body(str), (dict), (list) or (bytes)"
_SEND: Final = "await producer.send(body), with a producer of `await session.create_producer(queue)`"
_CONSUME: Final = "`async for message in consumer`, with a consumer of `await session.create_consumer(topic)`"
_RECEIVE: Final = "await consumer.receive(timeout=1), or `async for message in consumer`"
_REJECT: Final = "await session.recover(), or raise an error inside `async with consumer.process()`"
_CONNECTED: Final = "connection.state is ConnectionState.CONNECTED, or await connection.ping()"

#: What to write for names that classes do not have.
MESSAGE_NAMES: Final[Mapping[str, str]] = MappingProxyType({
    "ack": "await message.acknowledge()", "nack": _REJECT, "reject": _REJECT,
    "body": _BODY, "content": _BODY, "payload": _BODY, "value": _BODY,
    "data": "message.get_body(bytes)", "json": "message.get_body(dict), or json.loads(message.text)",
    "headers": "message.properties, and for JMS headers attributes such as message.jms_type",
    "id": "message.jms_message_id", "message_id": "message.jms_message_id", "type": "message.jms_type",
    "reply_to": "message.jms_reply_to", "correlation_id": "message.jms_correlation_id",
    "destination": "message.jms_destination", "topic": "message.jms_destination", "priority": "message.jms_priority",
    "timestamp": "message.jms_timestamp", "key": 'message.properties["JMSXGroupID"]',
})  # fmt: skip
CONNECTION_NAMES: Final[Mapping[str, str]] = MappingProxyType({
    "is_connected": _CONNECTED, "connected": _CONNECTED, "subscribe": _CONSUME, "consume": _CONSUME,
    "publish": _SEND, "send": _SEND, "disconnect": "await connection.close()",
})  # fmt: skip
SESSION_NAMES: Final[Mapping[str, str]] = MappingProxyType({
    "subscribe": _CONSUME, "consume": _CONSUME, "receive": _RECEIVE, "publish": _SEND, "send": _SEND,
    "ack": "await message.acknowledge()", "nack": _REJECT,
})  # fmt: skip
CONSUMER_NAMES: Final[Mapping[str, str]] = MappingProxyType({
    "ack": "await message.acknowledge()", "nack": _REJECT, "get": _RECEIVE, "poll": _RECEIVE, "recv": _RECEIVE,
    "messages": "`async for message in consumer`", "subscribe": "await consumer.set_message_listener(function)",
    "on_message": "await consumer.set_message_listener(function)",
})  # fmt: skip
PRODUCER_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(("produce", "put", "send_message", "write"), "await producer.send(body)")
)
MODULE_NAMES: Final[Mapping[str, str]] = MappingProxyType({
    "Client": "jmsaio.connect(url) or jmsaio.ConnectionFactory(url)",
    "Consumer": "await session.create_consumer(queue)",
    "Producer": "await session.create_producer(queue)", "Broker": "jmsaio.testing.embedded_broker()",
    "subscribe": _CONSUME, "publish": _SEND,
})  # fmt: skip


def no_attribute(owner: str, name: str, meant: str) -> AttributeError:
    """Return the error for a name of ``MESSAGE_NAMES`` and so on. Python adds no suggestion of its own."""
    return AttributeError(f"{owner} has no attribute {shown(name)}: write {meant}", name=name, obj=None)


class _Answer:
    """A name that a class does not have: using it raises AttributeError, which says what to write."""

    __slots__ = ("_meant", "_name")

    def __init__(self, name: str, meant: str) -> None:
        self._name = name
        self._meant = meant

    def __get__(self, owner: object, kind: type) -> Any:
        own = getattr(owner, "__dict__", {})  # of an application's subclass
        if self._name in own:
            return own[self._name]
        raise no_attribute(f"{kind.__name__!r} object", self._name, self._meant)

    def __set__(self, owner: object, value: object) -> None:
        own = getattr(owner, "__dict__", None)
        if own is None:
            raise no_attribute(f"{type(owner).__name__!r} object", self._name, self._meant)
        own[self._name] = value


def answers(*tables: Mapping[str, str]) -> Callable[[K], K]:
    """Decorate a class: the names of ``tables`` that it does not have are answered with what to write.

    ``dir`` of its objects, and thus completion, does not show them.
    """

    def add(kind: K) -> K:
        added = [(name, meant) for table in tables for name, meant in table.items() if not hasattr(kind, name)]
        hidden = {name for name, _ in added}

        def names(self: object) -> list[str]:
            return [name for name in object.__dir__(self) if name not in hidden or hasattr(self, name)]

        for name, meant in added:
            setattr(kind, name, _Answer(name, meant))
        kind.__dir__ = names  # type: ignore[assignment]  # of this very class
        return kind

    return add
