"""Destinations: queues, topics, temporary and virtual ones, and the Pulsar topics they name."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import ClassVar, Final
from urllib.parse import unquote_plus

import attrs

from jmsaio.errors import ConfigurationError, IllegalStateError, InvalidDestinationError
from jmsaio.model.arguments import brief, shown
from jmsaio.model.public import created_by
from jmsaio.model.topic_names import split_partition

_DOMAINS: Final = ("persistent://", "non-persistent://")
_MULTI: Final = "multi:"
_REGEX: Final = "regex:"
_CONSUMER: Final = "consumerConfig"
#: The option that queues read in addition to the options of consumers.
_QUEUE_TYPE: Final = "jms.queueSubscriptionType"
#: First parts of the names of options that belong to the factory.
_OF_FACTORY: Final = ("client", "jms", "producer", "producerConfig")
#: NUL, which requests to the REST interface can't contain, and lone surrogates, which are not UTF-8.
_UNSENDABLE: Final = re.compile("[\0\ud800-\udfff]")
#: Maximum bytes of a name: Pulsar accepts 8 KB for a URL with topic and subscription, each byte up to three characters.
_LONGEST: Final = 1000
#: Namespace of short names, unless a client's configuration names another.
_NAMESPACE: Final = "public/default"


@attrs.frozen(eq=False, repr=False)
class Destination:
    """A queue or topic by name, for use by any task or connection.

    Destinations are equal if kind and topic are equal, however their names are spelled: short or full, with or without
    a query string. A short name from a session or a message belongs to that connection's namespace. If the namespace is
    unknown, as in ``Queue("a")``, the destination equals the same short name in every namespace, so equality is not
    transitive between several namespaces: as keys of a dict use full names, or destinations from
    ``session.create_queue``.

    Attributes:
        name: the name as the application passed it; see ``resolve`` for the forms it can have.

    Raises:
        InvalidDestinationError: the name is empty or no text.
        ConfigurationError: the query string has an option that destinations do not read.
    """

    _kind: ClassVar[str] = "destination"
    name: str
    _namespace: str | None = attrs.field(default=None, kw_only=True)  # ``tenant/namespace`` of a short name, if known
    _topic: str = attrs.field(init=False)  # full name, without the query string
    _last: str = attrs.field(init=False)  # last segment of the topic, the same in every spelling

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            refused = shown(self.name)
            raise InvalidDestinationError(f"a destination needs a name, a non-empty string, not {refused}")
        visible, _, query = self.name.partition("?")
        _check_query(visible, query, isinstance(self, Queue))
        topic = full_name(visible, self._namespace or _NAMESPACE)
        object.__setattr__(self, "_topic", topic)  # the class is frozen
        object.__setattr__(self, "_last", topic.rpartition("/")[2])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Destination) or self._kind != other._kind:
            return False
        if self._topic == other._topic:
            return True
        return (self._namespace is None or other._namespace is None) and _visible(self.name) == _visible(other.name)

    def __hash__(self) -> int:
        return hash(self._last)

    def __str__(self) -> str:
        return f"{self._kind}://{self.name}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({shown(self.name)})"


@attrs.frozen(eq=False, repr=False)
class Queue(Destination):
    """A queue."""

    _kind: ClassVar[str] = "queue"

    @property
    def queue_name(self) -> str:
        """The name."""
        return self.name


@attrs.frozen(eq=False, repr=False)
class Topic(Destination):
    """A topic."""

    _kind: ClassVar[str] = "topic"

    @property
    def topic_name(self) -> str:
        """The name."""
        return self.name


_Delete = Callable[[], Awaitable[None]]


async def _delete(destination: Destination, delete: _Delete | None) -> None:
    if delete is None:
        raise IllegalStateError(f"{destination!r} was not created by a connection, so there is nothing to delete")
    await delete()


@created_by("session.create_temporary_queue")
@attrs.frozen(eq=False, repr=False)
class TemporaryQueue(Queue):
    """A queue that exists as long as the connection that created it."""

    _delete: _Delete | None = attrs.field(default=None, kw_only=True)
    _owner: str | None = attrs.field(default=None, kw_only=True)

    async def delete(self) -> None:
        """Delete the queue. Raises JMSError while it has consumers. Cancelling: repeat it."""
        await _delete(self, self._delete)


@created_by("session.create_temporary_topic")
@attrs.frozen(eq=False, repr=False)
class TemporaryTopic(Topic):
    """A topic that exists as long as the connection that created it."""

    _delete: _Delete | None = attrs.field(default=None, kw_only=True)
    _owner: str | None = attrs.field(default=None, kw_only=True)

    async def delete(self) -> None:
        """Delete the topic. Raises JMSError while it has consumers. Cancelling: repeat it."""
        await _delete(self, self._delete)


def as_destination(value: object, argument: str = "destination") -> Destination:
    """Return ``value`` as a Queue or Topic; objects of other libraries need a ``queue_name`` or ``topic_name``."""
    if isinstance(value, Queue | Topic):
        return value
    for attribute, kind in (("queue_name", Queue), ("topic_name", Topic)):
        name = getattr(value, attribute, None)
        if isinstance(name, str):
            return kind(name)
    raise InvalidDestinationError(
        f"{argument} must be a Queue or Topic (create_queue, create_topic), not {shown(value, 100)}"
    )


@attrs.frozen
class Resolved:
    """Topics and subscription of a destination on the broker: either topics by full name, or a pattern.

    ``subscription`` is a queue's ``:suffix``; ``overrides`` are the ``consumerConfig`` branch of the query string,
    nested; ``virtual`` destinations have several topics and can only be consumed.
    """

    topics: tuple[str, ...]
    pattern: str | None
    subscription: str | None
    overrides: Mapping[str, object]
    virtual: bool
    visible_name: str
    queue_type: str | None = None


def without_query(destination: Destination) -> Destination:
    visible = _visible(destination.name)
    return destination if visible == destination.name else attrs.evolve(destination, name=visible)


def resolve(destination: Destination, system_namespace: str = _NAMESPACE) -> Resolved:
    """Return the topics, subscription and overrides of a destination.

    Names are ``name`` or ``persistent://tenant/namespace/name``; for queues also ``...:subscription``; ``multi:a,b``
    and ``regex:pattern``; each optionally followed by ``?consumerConfig.key=value&...``. Raises InvalidDestinationError
    for an empty part, a name that Pulsar does not accept, or a query string that contradicts itself.
    """
    # Cached by name as spelled: a temporary destination as key would keep its connection alive.
    kind = Queue if isinstance(destination, Queue) else Topic
    return _resolve(kind, destination.name, destination._namespace or system_namespace)


@lru_cache(4096)
def _resolve(kind: type[Destination], name: str, system_namespace: str) -> Resolved:
    destination = kind(name)
    visible, mark, query = name.partition("?")
    overrides, queue_type = _options(query, destination) if mark else ({}, None)
    multi, regex = visible.startswith(_MULTI), visible.startswith(_REGEX)
    named = visible[len(_MULTI) :] if multi else visible[len(_REGEX) :] if regex else visible
    subscription = None
    if isinstance(destination, Queue):  # a topic's name can contain colons
        named, subscription = _split(named, destination)
    if not named:
        raise InvalidDestinationError(f"{destination!r} has no name")
    if regex:
        return Resolved((), full_name(named, system_namespace), subscription, overrides, True, visible, queue_type)
    names = named.removesuffix(",").split(",") if multi else [named]
    if not all(names):
        raise InvalidDestinationError(f"{destination!r} lists an empty name")
    topics = tuple(full_name(name, system_namespace) for name in names)
    for topic in topics:
        problem = broker_name_problem(topic.rpartition("/")[2]) or broker_name_problem(topic)
        if problem is not None:
            raise InvalidDestinationError(f"{destination!r} is not the name of a topic: {problem}")
    if subscription is not None and (problem := broker_name_problem(subscription)) is not None:
        raise InvalidDestinationError(f"{destination!r} is not the name of a subscription: {problem}")
    return Resolved(topics, None, subscription, overrides, len(topics) > 1, visible, queue_type)


def short_name(name: str, system_namespace: str) -> str:
    """Remove ``persistent://tenant/namespace/`` from a topic's name if it names ``system_namespace``."""
    short = name.removeprefix(f"persistent://{system_namespace}/")
    return name if short.startswith(_DOMAINS) else short  # otherwise it would not resolve to the same name


def _visible(name: str) -> str:
    return name.partition("?")[0]


def broker_name_problem(name: str) -> str | None:
    """Return why no topic or subscription of a broker can have this name; None if one can."""
    if not name.strip():
        return "it is blank"
    if _UNSENDABLE.search(name):
        return "it holds NUL or half a character"
    size = len(name.encode())
    return None if size <= _LONGEST else f"it has {size} bytes, more than {_LONGEST}"


def full_name(name: str, system_namespace: str = _NAMESPACE) -> str:
    return name if name.startswith(_DOMAINS) else f"persistent://{system_namespace}/{name}"


def _split(name: str, destination: Destination) -> tuple[str, str | None]:
    """Split into topic and ``:suffix``, the text after the last colon of the last path segment."""
    last = name.rpartition("/")[2]
    topic, colon, suffix = last.rpartition(":")
    if not colon:
        return name, None
    if not suffix:
        raise InvalidDestinationError(f"{destination!r} has no subscription after its last ':'")
    if not topic:
        raise InvalidDestinationError(f"{destination!r} has no topic before ':{brief(suffix)}'")
    return name[: len(name) - len(last)] + topic, suffix


def _check_query(visible: str, query: str, is_queue: bool) -> None:
    """Raise ConfigurationError if a query string has anything that destinations don't read. Values can be secrets."""
    for pair in filter(None, query.split("&")):
        key = unquote_plus(pair.partition("=")[0])
        head, _, rest = key.partition(".")
        if head == _CONSUMER or (key == _QUEUE_TYPE and is_queue):
            continue
        meant = rest if rest and head.lower().startswith("cons") else key
        remedy = f"write {shown(f'?{_CONSUMER}.{meant}=...')}"
        if head in _OF_FACTORY:
            remedy = "give it to connect or ConnectionFactory"
        elif visible.startswith(_REGEX):
            remedy += ", or {0,1} for a '?' of the pattern"
        raise ConfigurationError(
            f"unknown option {shown(key)} of the destination {shown(visible)}: after '?' only options of consumers are "
            f"read; {remedy}",
            key=key,
        )


def _options(query: str, destination: Destination) -> tuple[Mapping[str, object], str | None]:
    """Return the ``consumerConfig`` branch of a query string, and the type of a queue's subscription."""
    tree: dict[str, object] = {}
    for pair in filter(None, query.split("&")):
        key, _, value = pair.partition("=")
        *path, leaf = unquote_plus(key).split(".")
        branch = tree
        for step in path:
            below = branch.setdefault(step, {})
            if not isinstance(below, dict):
                raise InvalidDestinationError(
                    f"{destination!r}: {shown(step)} is a value and a group in its query string"
                )
            branch = below
        if isinstance(branch.get(leaf), dict):
            raise InvalidDestinationError(f"{destination!r}: {shown(leaf)} is a value and a group in its query string")
        branch[leaf] = unquote_plus(value)
    found = tree.get(_CONSUMER, {})
    if not isinstance(found, dict):
        raise InvalidDestinationError(f"{destination!r}: consumerConfig needs a key, as in consumerConfig.name=value")
    other = tree.get("jms", {})
    queue_type = other.get(_QUEUE_TYPE.partition(".")[2]) if isinstance(other, dict) else None
    return MappingProxyType(found), queue_type  # the result is cached, so it must not change


#: Kinds of destinations by their words.
KINDS: Final[Mapping[str, type[Queue] | type[Topic]]] = {"queue": Queue, "topic": Topic}


def parse_destination_text(text: str) -> Queue | Topic:
    """Parse ``queue://name`` or ``topic://name``.

    A bare name is rejected: messages to a queue that has no consumer yet are kept, messages to a topic are not.
    """
    kind, mark, name = text.partition("://")
    if not mark or not name or kind not in KINDS:
        raise InvalidDestinationError(f"destination {shown(text)} must be written queue://name or topic://name")
    return KINDS[kind](name)


def join_names(text: str) -> str:
    """Return the text of one destination for several names: separated by commas, or as Python or JSON writes a list."""
    whole = text.strip()
    is_list = whole.startswith("[") and whole.endswith("]")
    name, mark, query = (whole[1:-1] if is_list else whole).partition("?")
    names = [each.strip(" '\"" if is_list else None) for each in name.split(",")]
    kinds = {each.partition("://")[0] for each in names} & KINDS.keys()
    kind = f"{min(kinds)}://" if kinds else ""
    names = [each.removeprefix(kind) for each in names]
    if names[0].startswith(("multi:", "regex:")) or (len(names) == 1 and not is_list):
        return text
    if any(each.partition("://")[0] in KINDS for each in names):
        raise InvalidDestinationError(f"{shown(text)} names queues and topics: read each kind, and union the rows")
    return f"{kind}{'multi:' if len(names) > 1 else ''}{','.join(names)}{mark}{query}"


def with_kind(text: str, kind: str) -> str:
    """Add the kind, ``queue`` or ``topic``, to a destination that was written as a bare name."""
    return text if text.partition("://")[0] in KINDS else f"{kind}://{text}"


def destination_text(kind: type[Queue] | type[Topic], topic: str, namespace: str) -> str:
    """Return the text of the destination that a topic or partition belongs to, without ``namespace`` in its name."""
    word = next(word for word, known in KINDS.items() if issubclass(kind, known))
    return f"{word}://{short_name(split_partition(topic)[0], namespace)}"  # other clients' topics can contain "?"
