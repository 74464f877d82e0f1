"""Delivery modes and acknowledge modes."""

from __future__ import annotations

import enum
from typing import NoReturn

from jmsaio.errors import IllegalArgumentError
from jmsaio.model.arguments import shown


class DeliveryMode(enum.IntEnum):
    """Whether a message must survive a crash of the broker. A header only: Pulsar persists every message."""

    NON_PERSISTENT = 1
    PERSISTENT = 2

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise _unknown("delivery mode", cls, value)


class AcknowledgeMode(enum.IntEnum):
    """When a session acknowledges (Jakarta Messaging 3.1, 6.2.10 Message acknowledgment).

    INDIVIDUAL, also CLIENT_INDIVIDUAL, is an extension that Starlight and other providers have.
    """

    TRANSACTED = 0
    AUTO = 1
    CLIENT = 2
    DUPS_OK = 3
    INDIVIDUAL = 4
    CLIENT_INDIVIDUAL = 4

    @classmethod
    def of(cls, value: object) -> AcknowledgeMode:
        """The mode of a number; 101, RabbitMQ's and Artemis' number, is INDIVIDUAL. Raises IllegalArgumentError."""
        if not isinstance(value, int) or isinstance(value, bool) or value not in (101, *map(int, cls)):
            raise _unknown("acknowledge mode", cls, value)
        return cls.INDIVIDUAL if value == 101 else cls(value)

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise _unknown("acknowledge mode", cls, value)


def _unknown(what: str, kind: type[enum.IntEnum], value: object) -> IllegalArgumentError:
    return IllegalArgumentError(f"there is no {what} {shown(value)}; use one of {', '.join(kind.__members__)}")
