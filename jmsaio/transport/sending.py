"""Code shared by all senders: their options from the configuration, and waits with a time limit."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from jmsaio.config import Configuration
from jmsaio.transport.base import Route, Sender, SenderOptions, Settled

#: Seconds to wait for outcomes if ``producerConfig.sendTimeoutMs`` sets no limit.
LONGEST_WAIT: Final = 300.0


def sender_options(configuration: Configuration, route: Route | None, settled: Settled) -> SenderOptions:
    """Create the options of a sender from the configuration.

    Args:
        configuration: uses its ``producer`` and its window limits.
        route: as ``SenderOptions.route``.
        settled: as ``SenderOptions.settled``.
    """
    return SenderOptions(
        config=configuration.producer,
        settled=settled,
        route=route,
        window_records=configuration.send_window_messages,
        window_bytes=configuration.send_window_bytes or sys.maxsize,
    )


def longest_wait(configuration: Configuration) -> float:
    """Return the seconds to wait for room: the send time-out, and at least ``LONGEST_WAIT``."""
    return max(configuration.producer.send_timeout, LONGEST_WAIT)


async def has_room(sender: Sender, configuration: Configuration) -> bool:
    """Wait for room; ``Sender.ready`` itself has no time limit if ``sendTimeoutMs`` sets none.

    Returns:
        False if the broker has confirmed nothing for ``longest_wait`` seconds.

    Raises:
        As ``Sender.ready``.
    """
    try:
        async with asyncio.timeout(longest_wait(configuration)):
            await sender.ready()
    except TimeoutError:
        return False
    return True


async def drain(sender: Sender, configuration: Configuration) -> None:
    """Wait until every record has an outcome: for the send time-out, or ``LONGEST_WAIT`` seconds without one.

    Raises:
        OperationTimeoutError: a record has none by then.
    """
    await sender.drain(configuration.producer.send_timeout or LONGEST_WAIT)
