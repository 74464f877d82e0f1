"""A service that answers requests, and ends gracefully on SIGTERM or Ctrl-C: ``python service.py URL``."""

import asyncio
import contextlib
import signal
import sys

import jmsaio


async def serve(url: str, stop: asyncio.Event) -> int:
    """Answer requests until ``stop`` is set; return the number of answers."""
    answered = 0
    async with (
        jmsaio.connect(url) as connection,
        connection.create_session() as session,
        session.create_consumer(session.create_queue("greetings")) as consumer,
    ):
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):  # no request: look at ``stop`` again
                async with consumer.process(timeout=0.2) as request:
                    if request.jms_reply_to is not None:
                        await request.reply(f"hello {request.text}")
                        answered += 1
    return answered


async def main() -> None:
    stop = asyncio.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    print(await serve(sys.argv[1], stop), "requests answered")


if __name__ == "__main__":
    asyncio.run(main())
