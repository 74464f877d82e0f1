"""``WireTransport``: the connections of one client, and all objects opened through it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio

from jmsaio.config import Configuration, ConsumerConfig, ProducerConfig
from jmsaio.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    InvalidDestinationError,
    JMSError,
    OperationTimeoutError,
)
from jmsaio.model.wire import WireId
from jmsaio.protocol.commands import CompressionType
from jmsaio.protocol.compression import compressor
from jmsaio.transport.base import (
    Admin,
    Browsable,
    Capabilities,
    LinkListener,
    Reader,
    ReaderOptions,
    Receiver,
    Sender,
    SenderOptions,
    StartPosition,
    Subscription,
    Transaction,
    Wake,
)
from jmsaio.transport.causes import PASSING
from jmsaio.transport.clock import Clock
from jmsaio.transport.names import named
from jmsaio.transport.pulsar.admin import RestAdmin
from jmsaio.transport.pulsar.admin.same_cluster import SameCluster
from jmsaio.transport.pulsar.admin.transactions import TransactionOutcome, find_outcome
from jmsaio.transport.pulsar.dead_letters import DeadLetters, LetterSubscriptions
from jmsaio.transport.pulsar.subscriptions import ReceiverOpener
from jmsaio.transport.pulsar.wire.connections.client import Client
from jmsaio.transport.pulsar.wire.connections.pool import UNREACHABLE
from jmsaio.transport.pulsar.wire.consumers.reader import Browsing, WireReader
from jmsaio.transport.pulsar.wire.consumers.receiver import WireReceiver
from jmsaio.transport.pulsar.wire.producers.sender import WireSender
from jmsaio.transport.pulsar.wire.transactions.transaction import Transactions

_log = logging.getLogger(__name__)
_Part = WireSender | WireReceiver | WireReader
#: Seconds without a broker after which the log says so.
_PATIENCE: Final = 3.0


class WireTransport:
    """A ``Transport`` on Pulsar's binary protocol. Created by ``open_transport``."""

    def __init__(self, config: Configuration) -> None:
        self._config = config
        self._client = Client(config)
        self.same_cluster = SameCluster(config, self._client.topics.partitions, self.open_reader)
        self._admin = RestAdmin(config, self.same_cluster.check) if config.use_pulsar_admin else None
        self._opener = ReceiverOpener(self._subscribe, self._admin, config.close_timeout)
        self._letters = LetterSubscriptions(config, self._admin, self.open_receiver)
        self._transactions = Transactions(self._client, self._find_outcome)
        self._open: dict[_Part, None] = {}
        self._closing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        state = "closed" if self._client.closed else f"{len(self._open)} open"
        return f"<WireTransport {self._config.service_url}, {state}>"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            transactions=True, sequence_ids=True, exact_redelivery_count=False, packed=True, stores_properties=True,
            replaces_properties=self._admin is not None, message_ids=True,
            most_unacknowledged=self._config.max_unacknowledged_rejected,
        )  # fmt: skip

    @property
    def admin(self) -> Admin | None:
        return self._admin

    @property
    def browsable(self) -> Browsable:
        """The REST administration, which knows more, or the broker's protocol."""
        return self._admin or Browsing(self._client)

    @property
    def clock(self) -> Clock:
        return self._client.clock

    @property
    def link_listeners(self) -> set[LinkListener]:
        return self._client.listeners

    async def check_reachable(self) -> None:
        """Wait up to ``connect_timeout`` until a broker accepts this client.

        Raises BrokerUnavailableError if none answers, or the OAuth 2.0 server does not, with host, port and cause;
        JMSSecurityError if it refuses the credentials, or one side does not trust the other's certificate.
        """
        last: JMSError | None = None
        limit, url = self._config.connect_timeout, self._config.service_url

        def report() -> None:
            _log.warning("no broker answers at %s yet, trying for %g s: %s", url, limit, last or "no answer so far")

        reporting = self._client.loop.call_later(_PATIENCE, report)
        try:
            async with asyncio.timeout(limit):
                while True:
                    try:
                        await self._client.pool.connect_service()
                        return
                    except JMSError as error:
                        if error.error_code != UNREACHABLE and error.error_code not in PASSING:
                            raise
                        last = error
                        await asyncio.sleep(0.1)
        except TimeoutError:
            raise last or BrokerUnavailableError(f"no broker answers at {url}") from None
        finally:
            reporting.cancel()

    async def open_sender(self, topic: str, options: SenderOptions) -> Sender:
        """Open a sender. Raises also ConfigurationError for a compression without the library for it."""
        self._client.check()
        _check(options.config)
        sender = WireSender(self._client, topic, options, self._forget)
        await self._opened(sender, sender.start)
        return sender

    async def open_receiver(self, subscription: Subscription, wake: Wake) -> Receiver:
        self._client.check()
        return await self._opener.open(subscription, wake)

    async def _subscribe(self, subscription: Subscription, wake: Wake) -> WireReceiver:
        subscription = named(subscription)
        policy = subscription.config.dead_letter
        letters = None
        if policy is not None:
            letters = DeadLetters(policy, subscription.name, self.open_sender, self._letters)
        receiver = WireReceiver(self._client, subscription, wake, letters, self._forget)
        await self._opened(receiver, receiver.start)
        return receiver

    async def _opened(self, part: _Part, start: Callable[[float], Awaitable[None]]) -> None:
        self._open[part] = None
        try:
            await start(self._config.operation_timeout)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await part.aclose(0.5)
            raise

    def _forget(self, part: _Part) -> None:
        self._open.pop(part, None)

    async def open_reader(self, options: ReaderOptions) -> Reader:
        self._client.check()
        reader = WireReader(self._client, options, self._forget)
        await self._opened(reader, reader.start)
        return reader

    async def end(self, topic: str) -> WireId | None:
        self._client.check()
        deadline = self._client.loop.time() + self._config.operation_timeout
        if await self._client.topics.partitions(topic) != [topic]:
            raise InvalidDestinationError(f"{topic} has partitions: ask for the end of each, one by one")
        options = ReaderOptions(topic, ConsumerConfig(), StartPosition.LATEST)
        reader = WireReader(self._client, options, self._forget, receiving=False)
        await self._opened(reader, reader.start)
        try:
            return (await reader.ends(max(0.0, deadline - self._client.loop.time())))[0]
        finally:
            with anyio.CancelScope(shield=True):
                await reader.aclose(self._config.close_timeout)

    async def ping(self, timeout: float) -> None:
        self._client.check()
        try:
            async with asyncio.timeout(timeout):
                await self._client.topics.ping(timeout)
        except TimeoutError:
            raise OperationTimeoutError(f"ping: no answer within {timeout:g} s") from None
        except (OperationTimeoutError, BrokerUnavailableError):
            raise
        except JMSError:
            return  # it is an answer

    async def ready_for_transactions(self, timeout: float) -> None:
        self._client.check()
        await self._transactions.ready(timeout)

    async def begin(self, timeout: float) -> Transaction:
        self._client.check()
        return await self._transactions.begin(timeout)

    async def _find_outcome(self, txn_id: tuple[int, int], **known: Any) -> TransactionOutcome:
        if self._admin is None:
            return TransactionOutcome.UNKNOWN
        try:
            return await find_outcome(self._admin, txn_id, **known)
        except JMSError as error:
            _log.info("the REST interface does not tell how transaction %s ended: %s", txn_id, error)
            return TransactionOutcome.UNKNOWN

    async def aclose(self, timeout: float) -> None:
        """Close everything opened by this transport. Idempotent, bounded; cancelling ends the wait, not the close."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(timeout))
        await asyncio.shield(self._closing)

    async def _close(self, timeout: float) -> None:
        deadline = self._client.loop.time() + timeout
        parts = list(self._open)
        await self._transactions.aclose(timeout / 2)
        await asyncio.gather(*(part.aclose(timeout * 0.8) for part in parts), return_exceptions=True)
        self._client.closed = True
        await self._client.tasks.aclose(deadline - self._client.loop.time())
        await self._client.pool.aclose(max(0.1, deadline - self._client.loop.time()))
        if self._admin is not None:
            await self._admin.aclose()


def _check(config: ProducerConfig) -> None:
    try:
        compressor(CompressionType[config.compression_type.upper()])
    except ImportError as error:
        key = "producerConfig.compressionType"
        raise ConfigurationError(f"option {key}: {error}", key=key) from error


async def open_transport(config: Configuration) -> WireTransport:
    """Connect. Raises as ``WireTransport.check_reachable``."""
    transport = WireTransport(config)
    try:
        await transport.check_reachable()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await transport.aclose(1.0)
        raise
    return transport
