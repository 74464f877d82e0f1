"""Delivery modes and acknowledge modes."""

from __future__ import annotations

import enum
import warnings
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

    INDIVIDUAL, also CLIENT_INDIVIDUAL, is an extension of Starlight and other providers.
    """

    TRANSACTED = 0
    AUTO = 1
    CLIENT = 2
    DUPS_OK = 3
    INDIVIDUAL = 4
    CLIENT_INDIVIDUAL = 4

    @classmethod
    def of(cls, value: object) -> AcknowledgeMode:
        """Return the mode that was passed to the calling method: a member, or its number.

        A number gives a DeprecationWarning, at the line that calls the method, with the member to write instead. 101,
        the number of RabbitMQ and Artemis, is INDIVIDUAL. Raises IllegalArgumentError.
        """
        if isinstance(value, cls):
            return value
        number = isinstance(value, int) and not isinstance(value, bool | enum.Enum)
        if not number or value not in (101, *map(int, cls)):
            raise _unknown("acknowledge mode", cls, value)
        mode = cls.INDIVIDUAL if value == 101 else cls(value)
        warnings.warn(f"write {cls.__name__}.{mode.name} instead of {value}", DeprecationWarning, stacklevel=3)
        return mode

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        raise _unknown("acknowledge mode", cls, value)


def _unknown(what: str, kind: type[enum.IntEnum], value: object) -> IllegalArgumentError:
    members = ", ".join(f"{kind.__name__}.{name}" for name in kind.__members__)
    return IllegalArgumentError(f"there is no {what} {shown(value)}; use one of {members}")
