"""Completion of arguments in the shell."""

from __future__ import annotations

import asyncio
from typing import Final

import click

from jmsaio.cli.common.connecting import read_connection
from jmsaio.config import load
from jmsaio.errors import JMSError

#: Maximum seconds to wait for the broker, since a person is waiting at the prompt.
_LIMIT: Final = 3.0


def complete_destination(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of queues and topics that begin with ``incomplete``; none if the broker can't be asked."""
    try:
        source = read_connection(context.params.get("url"), context.params.get("settings") or ())
        names = asyncio.run(_names(source))
    except (JMSError, OSError, click.UsageError):
        return []
    return [name for name in names if name.startswith(incomplete)]


async def _names(source: dict[str, object]) -> list[str]:
    from jmsaio.maintenance.dead_letters import require_admin
    from jmsaio.maintenance.overview import list_names
    from jmsaio.transport.registry import connected

    config = load(source)
    async with asyncio.timeout(_LIMIT), connected(config) as transport:
        return await list_names(require_admin(transport), config)
