"""Delivery modes and acknowledge modes."""

from __future__ import annotations

import enum
from typing import Any

from jmsaio.errors import IllegalArgumentError
from jmsaio.model.arguments import shown


class DeliveryMode(enum.IntEnum):
    """How safe a message is; stored and delivered as a header, Pulsar persists every message."""

    NON_PERSISTENT = 1
    PERSISTENT = 2


class AcknowledgeMode(enum.IntEnum):
    """When a session acknowledges (jms-spec 6.1). INDIVIDUAL, also CLIENT_INDIVIDUAL, is seed 004's extension."""

    TRANSACTED = 0
    AUTO = 1
    CLIENT = 2
    DUPS_OK = 3
    INDIVIDUAL = 4
    CLIENT_INDIVIDUAL = 4

    @classmethod
    def of(cls, value: Any) -> AcknowledgeMode:
        """The mode of a number; 101, RabbitMQ's and Artemis' number, is INDIVIDUAL. Raises IllegalArgumentError."""
        if isinstance(value, int) and not isinstance(value, bool):
            if value == 101:
                return cls.INDIVIDUAL
            try:
                return cls(value)
            except ValueError:
                pass  # answered below, as any other value
        known = ", ".join(cls.__members__)
        raise IllegalArgumentError(f"there is no acknowledge mode {shown(value)}; use one of {known}")
