"""Topic names as Pulsar reads them: full names, patterns."""

from __future__ import annotations

import re

from jmsaio.errors import InvalidDestinationError

_DEFAULT_NAMESPACE = "persistent://public/default/"


def full_name(topic: str) -> str:
    """Return the full name of a topic; a short one is in ``public/default``.

    Raises:
        InvalidDestinationError: the name is empty.
    """
    if not topic:
        raise InvalidDestinationError("a topic needs a name")
    return topic if "://" in topic else _DEFAULT_NAMESPACE + topic


def namespace_of(topic: str) -> str:
    """Return the ``tenant/namespace`` of a full name."""
    return "/".join(topic.partition("://")[2].split("/")[:2])


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a topics pattern into a regular expression for full topic names (without partition).

    Raises:
        InvalidDestinationError: the pattern is not a valid regular expression in Python.
    """
    domain, _, rest = full_name(pattern).partition("://")
    tenant, _, rest = rest.partition("/")
    namespace, _, expression = rest.partition("/")
    start = re.escape(f"{domain}://{tenant}/{namespace}/")
    try:
        return re.compile(f"{start}(?:{expression})", re.DOTALL)
    except re.error as error:
        raise InvalidDestinationError(f"topics pattern {pattern!r}: {error}") from error
