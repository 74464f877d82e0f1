"""A function that returns the token: it is called for each connection and each REST call, and its errors are told."""

from __future__ import annotations

import logging
import subprocess
import sys

import anyio
import pytest

import jmsaio
from jmsaio.errors import JMSSecurityError
from tests.support.secure import SecureBroker

#: Seconds that anything here takes at most.
LONG = 90.0


async def test_a_function_is_called_for_each_connection_and_rest_call(secure_broker: SecureBroker) -> None:
    """The first token expires; the second one takes its place without an error."""
    given: list[str] = []
    lifetimes = iter((3.0,))

    def token() -> str:
        given.append(secure_broker.token(lifetime=next(lifetimes, None)))
        return given[-1]

    options = {name: value for name, value in secure_broker.options().items() if name != "authParams"}
    with anyio.fail_after(LONG):
        async with jmsaio.connect(options, auth_params=token) as connection, connection.create_session() as session:
            queue = session.create_queue("supplied")
            producer, consumer = await session.create_producer(queue), await session.create_consumer(queue)
            while len(given) < 8:  # the broker asks for another token when one expires
                before = len(given)
                await session.create_producer(session.create_queue(f"supplied-{before}"))  # over REST
                assert len(given) > before
                await producer.send("hello")
                message = await consumer.receive(timeout=30)
                assert message is not None
                assert message.text == "hello"
                await anyio.sleep(1)


async def test_what_a_function_raises_is_told(secure_broker: SecureBroker, caplog: pytest.LogCaptureFixture) -> None:
    def token() -> str:
        raise RuntimeError("a secret")

    caplog.set_level(logging.DEBUG)
    options = {name: value for name, value in secure_broker.options().items() if name != "authParams"}
    with anyio.fail_after(LONG), pytest.raises(JMSSecurityError, match="authParams raised RuntimeError") as told:
        await jmsaio.connect(options, auth_params=token)
    assert "a secret" not in str(told.value) + caplog.text


@pytest.mark.parametrize("closes", [True, False])
def test_a_process_with_such_a_function_ends_in_order(secure_broker: SecureBroker, closes: bool) -> None:
    """Also while pulsar-client calls it again and again, because the broker refuses the token by then."""
    script = (
        "import asyncio, sys, time, jmsaio\n"
        "async def main():\n"
        "    begun = []\n"
        "    connection = await jmsaio.connect(sys.argv[1], auth_plugin='token', use_pulsar_admin=False,\n"
        "                                      auth_params=lambda: 'forged' if begun else sys.argv[2])\n"
        "    session = await connection.create_session()\n"
        "    producer = await session.create_producer(session.create_queue('supplied-at-the-end'))\n"
        "    begun.append(await producer.send('x'))\n"
        "    while not producer_failed(await asyncio.gather(producer.send('x'), return_exceptions=True)):\n"
        "        await asyncio.sleep(0.1)\n"
        f"    if {closes}: await connection.close()\n"
        "def producer_failed(results): return isinstance(results[0], Exception)\n"
        "asyncio.run(main())\n"
    )
    token = secure_broker.token(lifetime=12)  # on a crowded machine it takes seconds to send the first message
    command = [sys.executable, "-W", "ignore", "-c", script, secure_broker.service_url, token]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0, done.stderr
