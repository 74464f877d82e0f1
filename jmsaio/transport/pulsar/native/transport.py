"""``PulsarTransport``: one native client, and all objects opened through it."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import _pulsar
import anyio
import attrs

from jmsaio.config import Configuration
from jmsaio.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    JMSSecurityError,
    OperationTimeoutError,
)
from jmsaio.model.arguments import shown
from jmsaio.model.wire import WireId
from jmsaio.rules.share import Share
from jmsaio.transport.base import (
    Capabilities,
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
from jmsaio.transport.names import CLIENT, process_name, unique_name
from jmsaio.transport.pulsar.admin import RestAdmin
from jmsaio.transport.pulsar.admin.same_cluster import SameCluster
from jmsaio.transport.pulsar.dead_letters import LetterSubscriptions
from jmsaio.transport.pulsar.native.binding.bridge import (
    Bridge,
    NativeClient,
    Released,
    close_late,
    holds_native,
    wait_for,
)
from jmsaio.transport.pulsar.native.binding.connecting import Probe, again
from jmsaio.transport.pulsar.native.binding.handles import ClientHandle, ProducerHandle
from jmsaio.transport.pulsar.native.binding.native_log import NATIVE_LOG
from jmsaio.transport.pulsar.native.binding.options import (
    client_configuration,
    producer_configuration,
    reader_configuration,
)
from jmsaio.transport.pulsar.native.consumers.reader import PulsarReader
from jmsaio.transport.pulsar.native.consumers.receiver import PulsarReceiver
from jmsaio.transport.pulsar.native.consumers.rereading import Rereading
from jmsaio.transport.pulsar.native.consumers.subscriber import Subscriber, last_message_id
from jmsaio.transport.pulsar.native.producers.sender import PulsarSender
from jmsaio.transport.pulsar.native.watch import Watch
from jmsaio.transport.pulsar.subscriptions import ReceiverOpener

_log = logging.getLogger(__name__)

#: Topic looked up at connect with a listener name. It is temporary, because the broker stores nothing of it.
_LISTENER_PROBE = "non-persistent://public/default/jmsaio-connect-partition-0"
#: Seconds between two checks of pulsar-client's log for the answer to a look-up.
_LISTENER_PAUSE = 0.1
#: Seconds for an opening before it is checked whether the broker refuses this client.
_OPENING = 1.0
#: Maximum seconds to find out whether the broker that serves a topic refuses this client.
_OWNER = 2.0
#: Type of the opened object.
Opened = TypeVar("Opened")


class PulsarTransport:
    """A ``Transport`` based on pulsar-client. Created by ``open_transport``."""

    def __init__(self, config: Configuration) -> None:
        self._config = config
        self.capabilities = Capabilities(
            transactions=False,
            sequence_ids=False,
            exact_redelivery_count=False,
            most_unacknowledged=config.max_unacknowledged_rejected,
            stores_properties=config.use_pulsar_admin,
            replaces_properties=config.use_pulsar_admin,
        )
        self._bridge = Bridge()
        self.clock = self._bridge.clock
        native = client_configuration(config)
        try:
            self._client: ClientHandle = _pulsar.Client(config.service_url, native)
        except (RuntimeError, ValueError) as error:
            raise ConfigurationError(f"pulsar-client refused {config.service_url}: {error}") from error
        self._bridge.captures_log = NATIVE_LOG.captures(self._client)
        if not self._bridge.captures_log:
            _log.warning(
                "pulsar-client's log can't be read: another user of it in this process made its client first, or this"
                " is Windows. Each message gets an answer of its own, which is slower; connect with jmsaio first"
            )
        share = Share(config.receive_buffer_bytes // 2)  # the other half is for records held by the client
        self._subscriber = Subscriber(
            self._bridge, self._client, config.operation_timeout, self.open_sender, share,
            lambda: self._letters, config.service_url, native.io_threads(),
        )  # fmt: skip
        holds_native(self)
        self._owned = NativeClient(self._client)
        self.same_cluster = SameCluster(config, self._subscriber.partitions, self.open_reader)
        self.admin: RestAdmin | None = RestAdmin(config, self.same_cluster.check) if config.use_pulsar_admin else None
        self.browsable = self.admin  # pulsar-client has no request for the place of a subscription
        self._opening = ReceiverOpener(self._subscribe, self.admin, config.close_timeout)
        self._letters = LetterSubscriptions(config, self.admin, self._opening.open)
        self._open: dict[PulsarSender | PulsarReceiver | PulsarReader, None] = {}
        self._probe = Probe(config)
        self._watch = Watch(
            self._bridge,
            config.service_url,
            lambda: [part for part in self._open if isinstance(part, PulsarSender)],
            lambda: [part for part in self._open if isinstance(part, PulsarReceiver)],
            self._subscriber.ask_broker,
            self.admin,
            self._probe.refusal,
        )
        self.link_listeners = self._watch.listeners
        self._rereading = Rereading(
            self._bridge,
            config.service_url,
            lambda: [part for part in list(self._open) if isinstance(part, PulsarReceiver)],
            self.open_reader,
            self._watch.report,
        )

    def __repr__(self) -> str:
        state = "closed" if self._bridge.failure is not None else f"{len(self._open)} open"
        return f"<PulsarTransport {self._config.service_url}, {state}>"

    async def check_reachable(self) -> None:
        """Wait up to ``connect_timeout`` until the broker answers and accepts the ``listenerName``; then watch it."""
        deadline = self._bridge.loop.time() + self._config.connect_timeout
        try:
            failure = await _first(self._ask_broker(self._config.connect_timeout), self._probe.hopeless())
        except (OperationTimeoutError, BrokerUnavailableError):
            failure = await self._probe.failure()
        except JMSSecurityError as error:
            failure = await self._probe.failure(error)
        if failure is not None:
            raise failure from self._probe.error
        await self._check_listener(deadline)
        self._watch.start()

    async def _ask_broker(self, timeout: float) -> None:
        what, end = f"connect to {self._config.service_url}", self._bridge.loop.time() + timeout
        if not await wait_for(self._probe.safe(), timeout):
            raise OperationTimeoutError(f"{what}: no answer within {timeout:g} s")
        if not self._probe.is_web:  # otherwise the REST interface has just answered
            await self._request_answer(what, end - self._bridge.loop.time())

    async def _request_answer(self, what: str, timeout: float) -> None:
        """Send a request to the broker; any answer about its topic is one, but not a refusal of the credentials."""
        try:
            await self._bridge.ask(self._subscriber.ask_broker, what, timeout)
        except JMSError as error:
            refused = isinstance(error, JMSSecurityError) and error.error_code != "AuthorizationError"
            if refused or isinstance(error, OperationTimeoutError | BrokerUnavailableError):
                raise

    async def _check_listener(self, deadline: float) -> None:
        """Look up the listener's name: pulsar-client repeats a failing look-up, and only logs it."""
        name = self._config.listener_name
        if not name:
            return
        position, loop = NATIVE_LOG.read(), self._bridge.loop
        start = partial(self._client.create_producer_async_v2, _LISTENER_PROBE, _pulsar.ProducerConfiguration())
        answer = self._bridge.start(start, "look up the listener", close_late)
        try:
            while not answer.done():
                await asyncio.wait({answer}, timeout=_LISTENER_PAUSE)
                refusal = NATIVE_LOG.refusals_of_topics(position).get(_LISTENER_PROBE)
                if refusal is not None and "listener" in refusal.reason:
                    why = f"{refusal.reason}; the broker's advertisedListeners has the names"
                    raise ConfigurationError(f"option listenerName = {shown(name)}: {why}", key="listenerName")
                if loop.time() >= deadline:
                    raise BrokerUnavailableError(
                        f"{self._config.service_url} answers, but not where to connect with listenerName={name}"
                    )
        finally:
            answer.cancel()

    async def open_sender(self, topic: str, options: SenderOptions) -> Sender:
        self._bridge.check()
        metadata = {CLIENT: process_name(), **options.metadata}
        native = producer_configuration(options.config, metadata, options.schema)
        timeout, loop = self._config.operation_timeout, self._bridge.loop
        deadline = loop.time() + timeout  # for the look-up and the producers together

        async def open_producer(partition: str) -> ProducerHandle:
            producer: ProducerHandle = await self._bridge.ask(
                partial(self._client.create_producer_async_v2, partition, native),
                f"open a producer to {partition}",
                min(timeout, deadline - loop.time()),
                close_late,
            )
            return producer

        list_partitions = partial(self._subscriber.partitions, topic)
        sender = PulsarSender(self._bridge, topic, options, self._forget, list_partitions, open_producer)
        self._open[sender] = None
        try:
            await self._unless_refused(sender.start(), f"open a producer to {topic}", topic)
        except BaseException:
            await sender.aclose(0.0)
            raise
        deadline = math.inf  # later partitions have a time limit of their own
        return sender

    async def open_receiver(self, subscription: Subscription, wake: Wake) -> Receiver:
        return await self._opening.open(subscription, wake)

    async def _subscribe(self, subscription: Subscription, wake: Wake) -> PulsarReceiver:
        self._bridge.check()
        opening = self._subscriber.open(subscription, wake, self._forget)
        topic = next(iter(subscription.topics), None)
        receiver = await self._unless_refused(opening, f"subscribe {subscription.name}", topic)
        self._open[receiver] = None
        return receiver

    async def open_reader(self, options: ReaderOptions) -> Reader:
        self._bridge.check()
        timeout, loop = self._config.operation_timeout, self._bridge.loop
        deadline = loop.time() + timeout
        if options.name is None:
            options = attrs.evolve(options, name=unique_name())
        first = StartPosition.EARLIEST if isinstance(options.start, int) else options.start
        what = f"open a reader of {options.topic}"
        opening = self._subscriber.open_reader(options.topic, first, reader_configuration(options), what, timeout)
        native = await self._unless_refused(opening, what, options.topic)
        reader = PulsarReader(self._bridge, native, options, self._forget)
        self._open[reader] = None
        if isinstance(options.start, int):
            try:
                await reader.seek(options.start, deadline - loop.time())
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await reader.aclose(self._config.close_timeout)
                raise
        return reader

    async def _unless_refused(self, opening: Coroutine[Any, Any, Opened], what: str, topic: str | None) -> Opened:
        """Wait until an opening ends, or the broker refuses this client: pulsar-client would retry for 30 s."""
        try:
            opened = await _first(opening, self._probe.until_refused(_OPENING))
        except (OperationTimeoutError, BrokerUnavailableError) as error:
            if topic is not None and isinstance(error, BrokerUnavailableError):
                refusal = await self._refusal_of_owner(topic)
                if refusal is not None:
                    raise again(what, refusal) from error
            raise await self._probe.explain(error) from None
        if isinstance(opened, JMSError):
            raise again(what, opened) from opened
        return opened

    async def _refusal_of_owner(self, topic: str) -> JMSError | None:
        """Return why the broker that serves a topic, which the URL might not name, refuses this client, if known."""
        if self.admin is not None:
            with anyio.move_on_after(_OWNER), suppress(JMSError):  # the opening has an error already
                owner = await self.admin.owner(topic, tls=self._config.scheme == "pulsar+ssl")
                return await self._probe.refusal_of(owner)
        return None

    async def end(self, topic: str) -> WireId | None:
        self._bridge.check()
        if await self._subscriber.partitions(topic) != [topic]:
            raise InvalidDestinationError(f"{topic} has partitions: request them one by one")
        config = self._config
        return await last_message_id(
            self._bridge, self._opening.open, topic, config.operation_timeout, config.close_timeout
        )

    async def ping(self, timeout: float) -> None:
        """Request the number of partitions of a topic that does not exist; repeated while the connection is lost."""
        self._bridge.check()
        try:
            await self._request_answer(f"ping {self._config.service_url}", timeout)
        except (OperationTimeoutError, BrokerUnavailableError) as error:
            raise await self._probe.explain(error) from None

    async def ready_for_transactions(self, timeout: float) -> None:
        raise IllegalStateError("pulsar-client has no transactions (Capabilities.transactions)")

    async def begin(self, timeout: float) -> Transaction:
        raise IllegalStateError("pulsar-client has no transactions (Capabilities.transactions)")

    def _forget(self, part: PulsarSender | PulsarReceiver | PulsarReader) -> None:
        self._open.pop(part, None)
        if isinstance(part, PulsarReceiver):
            self._rereading.closed(part)

    async def aclose(self, timeout: float) -> None:
        if self._bridge.failure is not None:
            return
        deadline = self._bridge.loop.time() + timeout
        share = max(0.0, timeout * 0.8)
        closed = asyncio.Event()

        def ended() -> None:
            self._bridge.retained.clear()
            self._bridge.post(closed.set)

        try:
            try:
                await self._watch.aclose()
                parts = [part.aclose(share) for part in list(self._open)]
                await asyncio.gather(self._rereading.aclose(share), *parts, return_exceptions=True)
            finally:
                self._bridge.close()
                self._owned.close(ended)
            await self._bridge.all_ended(deadline - self._bridge.loop.time())
            await wait_for(closed.wait(), max(0.1, deadline - self._bridge.loop.time()))
            self._bridge.release()
            self._client = self._subscriber.client = Released()
        finally:
            if self.admin is not None:
                with anyio.CancelScope(shield=True):
                    await self.admin.aclose()


async def _first(opening: Coroutine[Any, Any, Opened], checking: Coroutine[Any, Any, JMSError]) -> Opened | JMSError:
    """Return the result of an opening, or of a check that ends before it, which cancels the opening."""
    check = asyncio.ensure_future(checking)
    try:
        with anyio.CancelScope() as scope:
            check.add_done_callback(lambda _: scope.cancel())
            return await opening
    finally:
        check.cancel()  # without waiting: a cancellation meanwhile would lose what was opened
    return check.result()
