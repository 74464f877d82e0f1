"""``PulsarTransport``: one native client and everything made from it."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import _pulsar
import anyio

from jmsaio.admin import RestAdmin, open_admin
from jmsaio.config import Configuration
from jmsaio.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    IllegalStateError,
    JMSError,
    JMSSecurityError,
    OperationTimeoutError,
)
from jmsaio.transport.base import (
    Admin,
    Capabilities,
    LinkListener,
    Reader,
    ReaderOptions,
    Receiver,
    Sender,
    SenderOptions,
    Subscription,
    Transaction,
    Wake,
)
from jmsaio.transport.pulsar.attempts import Attempts
from jmsaio.transport.pulsar.bridge import Bridge, Released, holds_native, wait_for
from jmsaio.transport.pulsar.closing import NativeClient
from jmsaio.transport.pulsar.native_log import NATIVE_LOG
from jmsaio.transport.pulsar.options import (
    client_configuration,
    native_position,
    producer_configuration,
    reader_configuration,
)
from jmsaio.transport.pulsar.reader import PulsarReader
from jmsaio.transport.pulsar.receiver import PulsarReceiver
from jmsaio.transport.pulsar.sender import PulsarSender
from jmsaio.transport.pulsar.subscribing import Subscriber, close_late
from jmsaio.transport.pulsar.watch import Watch

_log = logging.getLogger("jmsaio")

CAPABILITIES = Capabilities(
    transactions=False,
    subscription_properties=False,
    non_durable=False,
    sequence_ids=False,
    delayed_exclusive=False,
    exact_redelivery_count=False,
)
#: Asked for at connect; a partition's name, so that no broker creates it.
_PROBE = "persistent://public/default/jmsaio-connect-partition-0"


class PulsarTransport:
    """A ``Transport`` over pulsar-client. Made by ``open_transport``."""

    def __init__(self, config: Configuration) -> None:
        self._config = config
        self._bridge = Bridge()
        try:
            self._client = _pulsar.Client(config.service_url, client_configuration(config))
        except (RuntimeError, ValueError) as error:
            raise ConfigurationError(f"pulsar-client refused {config.service_url}: {error}") from error
        self._bridge.hears_log = NATIVE_LOG.hears(self._client)
        if not self._bridge.hears_log:
            _log.warning(
                "another user of pulsar-client in this process made its client first, and its log goes there:"
                " each message gets an answer of its own, which is slower; connect with jmsaio first"
            )
        self._subscriber = Subscriber(self._bridge, self._client, config.operation_timeout, self.open_sender)
        holds_native(self)
        self._owned = NativeClient(self._client)
        self._admin: RestAdmin | None = open_admin(config) if config.use_pulsar_admin else None
        self._open: dict[PulsarSender | PulsarReceiver | PulsarReader, None] = {}
        self._watch = Watch(
            self._bridge,
            config.service_url,
            lambda: [part for part in self._open if isinstance(part, PulsarSender)],
            lambda: [part for part in self._open if isinstance(part, PulsarReceiver)],
            partial(self._client.get_topic_partitions_async, _PROBE),
            self._admin,
        )

    def __repr__(self) -> str:
        state = "closed" if self._bridge.failure is not None else f"{len(self._open)} open"
        return f"<PulsarTransport {self._config.service_url}, {state}>"

    @property
    def capabilities(self) -> Capabilities:
        """What pulsar-client can do."""
        return CAPABILITIES

    @property
    def admin(self) -> Admin | None:
        """REST administration, or None with ``jms.usePulsarAdmin=false``."""
        return self._admin

    @property
    def link_listeners(self) -> set[LinkListener]:
        """Who is told that the link to the broker, or a subscription, was lost or is back."""
        return self._watch.listeners

    async def prove(self) -> None:
        """Wait until the broker answers, at most ``connect_timeout``.

        Raises:
            BrokerUnavailableError: it does not; carries host, port and cause.
            JMSSecurityError: it refuses the credentials.
        """
        timeout = self._config.connect_timeout
        try:
            probe = partial(self._client.get_topic_partitions_async, _PROBE)
            await self._bridge.ask(probe, f"connect to {self._config.service_url}", timeout)
        except (OperationTimeoutError, BrokerUnavailableError) as error:
            raise await self._unavailable(error) from error
        except JMSSecurityError as error:
            if error.error_code != "AuthorizationError":
                raise
        except JMSError:
            # Whatever the broker says about that topic, it answers.
            return

    async def _unavailable(self, error: JMSError) -> BrokerUnavailableError:
        hosts = urlsplit(self._config.service_url).netloc.split(",")
        host, _, port = hosts[0].rpartition(":")
        cause = "; ".join([f"{name}: {await _knock(name)}" for name in hosts])
        return BrokerUnavailableError(
            f"no broker answers at {self._config.service_url} within {self._config.connect_timeout:g} s: {cause}",
            host.strip("[]"),
            int(port),
        )

    async def open_sender(self, topic: str, options: SenderOptions) -> Sender:
        """Make a sender to a full topic name.

        Raises:
            NotFoundError: there is no such topic and the broker creates none.
            JMSSecurityError: no right to send to it.
            OperationTimeoutError: no answer within ``operation_timeout``.

        Cancellation: what was made is closed again.
        """
        self._bridge.check()
        native = producer_configuration(options.config, options.metadata)

        async def open_producer(partition: str) -> Any:
            return await self._bridge.ask(
                partial(self._client.create_producer_async_v2, partition, native),
                f"open a producer to {partition}",
                self._config.operation_timeout,
                close_late,
            )

        sender = PulsarSender(self._bridge, topic, options, self._forget)
        self._open[sender] = None
        self._watch.start()
        try:
            await sender.start(partial(self._subscriber.partitions, topic), open_producer)
        except BaseException:
            await sender.aclose(0.0)
            raise
        return sender

    async def open_receiver(self, subscription: Subscription, wake: Wake) -> Receiver:
        """Subscribe.

        Raises:
            ConsumerBusyError: the subscription has its only consumer already.
            NotFoundError: no such topic, and the broker creates none.
            JMSSecurityError: no right to do so.
            OperationTimeoutError: no answer within ``operation_timeout``.
            IllegalStateError: ``durable=False``, which pulsar-client does not offer.

        Cancellation: what was made is closed again.
        """
        receiver = await self._subscriber.open(subscription, wake, self._forget)
        self._open[receiver] = None
        self._watch.start()
        return receiver

    async def open_reader(self, options: ReaderOptions) -> Reader:
        """Make a reader.

        Raises:
            NotFoundError: no such topic, and the broker creates none.
            OperationTimeoutError: no answer within ``operation_timeout``.

        Cancellation: what was made is closed again.
        """
        self._bridge.check()
        native = await Attempts(
            self._bridge,
            partial(
                self._client.create_reader_async_v2,
                options.topic,
                native_position(options.start),
                reader_configuration(options, options.config),
            ),
            f"open a reader of {options.topic}",
            self._config.operation_timeout,
            close_late,
            topic=options.topic,
        ).run()
        reader = PulsarReader(self._bridge, native, options, self._forget)
        self._open[reader] = None
        return reader

    async def begin(self, timeout: float) -> Transaction:
        """Not offered by pulsar-client: raises IllegalStateError."""
        raise IllegalStateError("pulsar-client has no transactions (Capabilities.transactions)")

    def _forget(self, part: PulsarSender | PulsarReceiver | PulsarReader) -> None:
        self._open.pop(part, None)

    async def aclose(self, timeout: float) -> None:
        """Close everything made from it; callbacks still owed are called with an error. Idempotent, bounded.

        Cancellation: closing goes on.
        """
        if self._bridge.failure is not None:
            return
        deadline = self._bridge.loop.time() + timeout
        share = max(0.0, timeout * 0.8)
        closed: asyncio.Future[None] = self._bridge.loop.create_future()
        try:
            await self._watch.aclose()
            await asyncio.gather(*(part.aclose(share) for part in list(self._open)), return_exceptions=True)
        finally:
            self._bridge.close()
            self._owned.close(lambda: self._bridge.post(_resolve, closed))
        await wait_for(closed, max(0.1, deadline - self._bridge.loop.time()))
        self._bridge.release()
        self._client = self._subscriber.client = Released()
        if self._admin is not None:
            await self._admin.aclose()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _knock(address: str) -> str:
    """Why a TCP connection fails, in words."""
    host, _, port = address.rpartition(":")
    try:
        with anyio.fail_after(3):
            stream = await anyio.connect_tcp(host.strip("[]"), int(port))
            await stream.aclose()
    except TimeoutError:
        return "no answer to a TCP connection"
    except OSError as error:
        return _reason(error)
    return "a TCP connection works, but nobody speaks Pulsar's protocol there"


def _reason(error: BaseException) -> str:
    """The operating system's words for the first real cause of a failed connection."""
    if isinstance(error, socket.gaierror):
        return str(error.strerror)
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__
    return str(error) if inner is None else _reason(inner)
