"""Names by which a person recognises this process in a broker's statistics: ``app@host:pid``."""

from __future__ import annotations

import os
import re
import socket
import sys
import zlib
from itertools import count
from pathlib import Path

import attrs

from jmsaio.transport.base import Subscription, SubscriptionType

#: Key in a producer's metadata: the name of its process. Brokers refuse the same producer name twice on a topic.
CLIENT = "jmsaio.client"
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_APP, _HOST = 40, 63  # maximum lengths; 63 is that of a name in the DNS
_numbers = count(1)


def process_name() -> str:
    """Return the name of this process: its program, host and process id."""
    program = Path((getattr(sys, "argv", None) or [""])[0])  # an embedded interpreter might have none
    app = program.parent.name if program.stem == "__main__" else program.stem
    return f"{_part(app, _APP) or 'python'}@{_part(socket.gethostname(), _HOST)}:{os.getpid()}"


def _part(text: str, length: int) -> str:
    return _OTHER.sub("_", text).strip("_-")[:length]


def unique_name() -> str:
    """Return a name that no other consumer or reader of this process has: the process's, with a number.

    Names of a process sort by age: on partitions, Pulsar sorts the consumers of a failover subscription by name.
    """
    return f"{process_name()}-{next(_numbers):04d}"


def named(subscription: Subscription) -> Subscription:
    """Give a consumer without a configured name a unique one.

    Without a first part that differs, the process whose name sorts first would receive the first partition of every
    failover subscription.
    """
    config = subscription.config
    if config.consumer_name is not None:
        return subscription
    name = unique_name()
    if subscription.type is SubscriptionType.FAILOVER:
        name = f"{zlib.crc32(f'{process_name()} {subscription.identity}'.encode()) & 0xFF:02x}-{name}"
    return attrs.evolve(subscription, config=attrs.evolve(config, consumer_name=name))
