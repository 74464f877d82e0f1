"""The broker's transaction coordinators: where each is, and requests to them until they are answered.

A coordinator is a partition of a system topic, and serves the transactions that it began, whose ids name it.
"""

from __future__ import annotations

import asyncio
import math
from itertools import count
from random import random
from typing import Any, Final

import attrs

from jmsaio.errors import IllegalStateError, JMSError, JMSSecurityError, NotFoundError, OperationTimeoutError
from jmsaio.protocol.commands import Command
from jmsaio.protocol.metadata import TxnId
from jmsaio.transport.pulsar.wire.connections.answers import Backoff, passes
from jmsaio.transport.pulsar.wire.connections.connection import Connection
from jmsaio.transport.pulsar.wire.connections.topics import Topics

TOPIC: Final = "persistent://pulsar/system/transaction_coordinator_assign"
#: Seconds that a broker keeps a transaction longer than its client, which rolls it back when its time is over: what is
#: sent in a transaction that the broker has ended is accepted, and stalls its topic.
LONGER: Final = 5.0
#: How often a coordinator that is not there yet is asked, and the seconds between: it moves with its partition.
_ATTEMPTS, _PAUSE = 10, 1.0
_NOT_FOUND: Final = "TransactionCoordinatorNotFoundError"
_NONE: Final = (
    "this broker has no transactions: set transactionCoordinatorEnabled=true and systemTopicEnabled=true in its "
    "configuration (in a cluster, also run 'bin/pulsar initialize-transaction-coordinator-metadata' once), or use "
    "jms.emulateTransactions=true"
)
_NO_RIGHT: Final = (
    "clients with transactions need the right to consume in pulsar/system: "
    "'pulsar-admin namespaces grant-permission pulsar/system --role ROLE --actions consume'"
)


@attrs.frozen
class Answer:
    """The answer to a request, sent at the loop time ``since`` (infinity for an error).

    ``lost``: the request was also sent before, without an answer, or with an error that passes, and might have been
    carried out then.
    """

    fields: dict[str, Any]
    error: JMSError | None = None
    lost: bool = False
    since: float = math.inf


class Coordinators:
    """The coordinators of one cluster, as one transport sees them."""

    def __init__(self, topics: Topics, backoff: Backoff) -> None:
        self._topics = topics
        self._backoff = backoff
        self._count = 0
        self._turn = count()
        self._connections: dict[int, Connection] = {}  # on which the coordinator knows this client
        self._connecting: dict[int, asyncio.Lock] = {}

    async def ready(self, timeout: float) -> None:
        """Find out how many coordinators there are. Raises as ``Transport.ready_for_transactions``."""
        if self._count:
            return
        try:
            async with asyncio.timeout(timeout):
                partitions = await self._topics.partitions(TOPIC)
                if partitions != [TOPIC]:  # the partitions stay when transactions are switched off
                    await self._connected(0, "ask for the transaction coordinators")
                    self._count = len(partitions)
        except TimeoutError:
            text = f"ask for the transaction coordinators: no answer within {timeout:g} s"
            raise OperationTimeoutError(text) from None
        except JMSSecurityError as error:
            raise JMSSecurityError(f"{error}; {_NO_RIGHT}", error.error_code) from error
        except JMSError as error:
            if not isinstance(error, NotFoundError) and error.error_code != "NotAllowedError":
                raise
            raise IllegalStateError(_NONE) from error
        if not self._count:
            raise IllegalStateError(_NONE)

    async def begin(self, timeout: float, deadline: float) -> tuple[TxnId, float]:
        """Begin a transaction at the next coordinator in turn; return its id, and the loop time from which it counts.

        After ``timeout`` seconds the caller rolls it back; the broker does 5 seconds later.
        """
        await self.ready(deadline - asyncio.get_running_loop().time())
        number = next(self._turn) % self._count
        milliseconds = round((timeout + LONGER) * 1000)  # whatever the field is called
        answer = await self.ask(
            number, "begin a transaction", deadline, Command.NEW_TXN, txn_ttl_seconds=milliseconds, tc_id=number
        )
        if answer.error is not None:
            raise answer.error
        return TxnId(answer.fields["txnid_most_bits"], answer.fields["txnid_least_bits"]), answer.since

    async def ask(self, number: int, what: str, deadline: float, command: Command, **fields: Any) -> Answer:
        """Send a request to a coordinator, again if its answer is lost."""
        loop = asyncio.get_running_loop()
        lost = asked = False
        failures = missed = 0
        last: JMSError = OperationTimeoutError(f"{what}: the transaction coordinator does not answer in time")
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    try:
                        connection = await self._connected(number, what)
                        asked, since = True, loop.time()
                        found = await connection.start_request(command, **fields)
                        if "error" not in found:
                            return Answer(found, lost=lost, since=since)
                        error: JMSError = connection.error_of(what, found)
                        asked = passes(error, again=False)  # the broker can continue with it
                    except JMSError as raised:
                        error = raised
                    lost, asked = lost or asked, False
                    failures, last = failures + 1, error
                    away = error.error_code == _NOT_FOUND
                    if away:
                        self._connections.pop(number, None)
                        missed += 1
                    if missed >= _ATTEMPTS or not (away or passes(error, again=False)):
                        return Answer({}, error, lost)
                    await asyncio.sleep(_PAUSE if away else self._backoff.delay(failures, random()))
        except TimeoutError:
            return Answer({}, last, lost or asked)

    async def _connected(self, number: int, what: str) -> Connection:
        async with self._connecting.setdefault(number, asyncio.Lock()):
            found = self._connections.get(number)
            if found is not None and found.error is None:
                return found
            connection = await self._topics.owner(f"{TOPIC}-partition-{number}")
            answer = await connection.start_request(Command.TC_CLIENT_CONNECT_REQUEST, tc_id=number)
            if "error" in answer:
                raise connection.error_of(what, answer)
            self._connections[number] = connection
            return connection
