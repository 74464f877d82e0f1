"""Send a request and wait for its reply: ``python request_reply.py URL NAME``, while service.py runs."""

import asyncio
import sys

import jmsaio


async def greet(url: str, name: str) -> str | None:
    """Return the service's answer.

    Raises:
        TimeoutError: no service answered within five seconds.
    """
    async with jmsaio.connect(url) as connection, connection.create_session() as session:
        reply = await session.request(session.create_queue("greetings"), name, timeout=5)
        return reply.text


if __name__ == "__main__":
    print(asyncio.run(greet(sys.argv[1], sys.argv[2])))
