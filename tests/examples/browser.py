"""List messages of a queue without consuming them: ``python browser.py URL QUEUE [SELECTOR]``."""

import asyncio
import sys

import jmsaio


async def browse(url: str, queue: str, selector: str | None = None) -> list[str | None]:
    """Return the texts of the messages that match."""
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        async with session.create_browser(session.create_queue(queue), selector) as browser:
            return [message.text async for message in browser]


if __name__ == "__main__":
    print(*asyncio.run(browse(*sys.argv[1:])), sep="\n")
