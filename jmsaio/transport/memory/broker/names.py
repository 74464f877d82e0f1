"""Names of topics as Pulsar reads them: full names, patterns."""

from __future__ import annotations

import re

from jmsaio.errors import InvalidDestinationError

_DEFAULT_NAMESPACE = "persistent://public/default/"


def full_name(topic: str) -> str:
    """The full name of a topic; a short one is in ``public/default``.

    Raises:
        InvalidDestinationError: an empty name.
    """
    if not topic:
        raise InvalidDestinationError("a topic needs a name")
    return topic if "://" in topic else _DEFAULT_NAMESPACE + topic


def namespace_of(topic: str) -> str:
    """``tenant/namespace`` of a full name."""
    return "/".join(topic.partition("://")[2].split("/")[:2])


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Full name of topics (without partition) that a topics pattern means; the namespace is literal.

    Raises:
        InvalidDestinationError: not a regular expression that Python takes.
    """
    domain, _, rest = full_name(pattern).partition("://")
    tenant, _, rest = rest.partition("/")
    namespace, _, expression = rest.partition("/")
    start = re.escape(f"{domain}://{tenant}/{namespace}/")
    try:
        return re.compile(f"{start}(?:{expression})", re.DOTALL)
    except re.error as error:
        raise InvalidDestinationError(f"topics pattern {pattern!r}: {error}") from error
