"""What all who send share: the options of a sender by the configuration, and waits that have a bound."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from jmsaio.config import Configuration
from jmsaio.transport.base import Route, Sender, SenderOptions, Settled

#: Seconds to wait for outcomes where ``producerConfig.sendTimeoutMs`` sets no bound.
LONGEST_WAIT: Final = 300.0


def sender_options(configuration: Configuration, route: Route | None, settled: Settled) -> SenderOptions:
    """How the configuration wants a sender to be made.

    Args:
        configuration: its ``producer`` and its window count.
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
    """Seconds to wait for room: as long as a send may take, and ``LONGEST_WAIT`` seconds at least."""
    return max(configuration.producer.send_timeout, LONGEST_WAIT)


async def has_room(sender: Sender, configuration: Configuration) -> bool:
    """Wait for room; ``Sender.ready`` itself has no bound where ``sendTimeoutMs`` has none.

    Returns:
        False where the broker has confirmed nothing for ``longest_wait`` seconds.

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
    """Wait until every record has its outcome: as long as a send may take, or ``LONGEST_WAIT`` seconds.

    Raises:
        OperationTimeoutError: one has none by then.
    """
    await sender.drain(configuration.producer.send_timeout or LONGEST_WAIT)
