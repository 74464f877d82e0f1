"""Destinations as texts: ``queue://name`` or ``topic://name``, as commands and Spark take and write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jmsaio.errors import InvalidDestinationError
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import Queue, Topic, short_name
from jmsaio.model.topic_names import split_partition

#: Kinds of destinations by their words.
KINDS: Final[Mapping[str, type[Queue] | type[Topic]]] = {"queue": Queue, "topic": Topic}


def parse_destination_text(text: str) -> Queue | Topic:
    """Parse a destination text.

    A bare name is rejected: messages to a queue that has no consumer yet are kept, messages to a topic are not.

    Raises:
        InvalidDestinationError: the text has another form.
    """
    kind, mark, name = text.partition("://")
    if not mark or not name or kind not in KINDS:
        raise InvalidDestinationError(f"destination {shown(text)} must be written queue://name or topic://name")
    return KINDS[kind](name)


def join_names(text: str) -> str:
    """Return the text of one destination for several names: separated by commas, or as Python or JSON writes a list.

    Raises:
        InvalidDestinationError: some are queues and others topics.
    """
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
    """Return the text of the destination that a topic or partition belongs to.

    Args:
        topic: full name of the topic, or of the partition.
        namespace: ``tenant/namespace`` to leave out of the name.
    """
    word = next(word for word, known in KINDS.items() if issubclass(kind, known))
    return f"{word}://{short_name(split_partition(topic)[0], namespace)}"  # other clients' topics can contain "?"
