"""The selectors that operators set on subscriptions, as properties that Starlight's filter plugin reads.

The plugin does not apply them everywhere: it delivers a batch as a whole, and a broker without the plugin delivers
everything. So the client also reads them, and applies them to received messages if the rules of JMS give the plugin's
results.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from math import inf
from weakref import WeakValueDictionary

import anyio
import attrs

from jmsaio.client.callbacks.reports import ExceptionReports
from jmsaio.codec.headers import header
from jmsaio.config import Configuration
from jmsaio.errors import (
    IllegalStateError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    NotFoundError,
)
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import Destination, Queue, resolve
from jmsaio.model.log_fields import log_fields
from jmsaio.model.topic_names import is_temporary, split_partition
from jmsaio.model.wire import ReceivedRecord
from jmsaio.rules.fate import Rejection
from jmsaio.selector.agreement import PluginSelector, plugin_selector
from jmsaio.transport.base import DESTINATION_TYPE, FILTERING, PLUGIN, SELECTOR, Admin, Subscription, Transport
from jmsaio.transport.clock import LoopTimers
from jmsaio.transport.subscriptions import is_away, list_topics, precreate
from jmsaio.transport.waiting import together

_log = logging.getLogger(__name__)

#: Maximum time for reading the selectors of one subscription, and the pause after a failure, in seconds.
_LONGEST, _PAUSE = 5.0, 60.0
#: Seconds for which a selector counts as known: a message is only removed by a selector read within this time.
_FRESH = 10.0
#: Minimum time between two readings for which messages wait, in seconds.
_OFTEN = 1.0


@attrs.define(eq=False)
class SubscriptionSelectors:
    """The selectors of one subscription, by whole topic, as last read; a failed reading changes nothing."""

    subscription: Subscription
    _reader: SelectorReader
    by_topic: dict[str, PluginSelector] = attrs.field(factory=dict, init=False)
    read: float = attrs.field(default=-inf, init=False)  # time of the request for the current ones, by the clock
    _not_before: float = attrs.field(default=-inf, init=False)
    _invalid: str | None = attrs.field(default=None, init=False)  # why the last ones can't be parsed
    _requested: float = attrs.field(default=-inf, init=False)

    @property
    def text(self) -> str | None:
        return next((selector.text for selector in self.by_topic.values()), None)

    @property
    def fresh(self) -> bool:
        return self._reader.timers.clock.steady() - self.read <= _FRESH

    def rejects(self, record: ReceivedRecord) -> Rejection | None:
        """Return whether the selector of its topic excludes a record; UNSURE if it has to be read again first."""
        selector = self.by_topic.get(split_partition(record.topic)[0]) if self.by_topic else None
        if selector is None or selector.matches_record is None or selector.matches_record(record, header) is True:
            return None
        if self.fresh:
            return Rejection.SUBSCRIPTION
        now = self._reader.timers.clock.steady()
        if now - self._requested >= _OFTEN:
            self._requested = now
            self._reader.hurry((self,))
        return Rejection.UNSURE

    async def read_from(self, admin: Admin) -> None:
        """Read the selectors; without an answer they stay. Raises InvalidSelectorError, and they stay."""
        subscription, now = self.subscription, self._reader.timers.clock.steady()
        # No operator sets a selector on a temporary destination, which ends with its owner.
        temporary = bool(subscription.topics) and all(map(is_temporary, subscription.topics))
        if not subscription.durable or now < self._not_before or temporary:
            return
        try:
            with anyio.fail_after(_LONGEST):
                topics = await list_topics(admin, subscription)
                found = await together(_text(admin, topic, subscription.name) for topic in topics)
        except (JMSError, TimeoutError) as error:
            self._not_before = now + _PAUSE
            self._reader.failed(subscription, error, self._not_before)
            return
        self._update({topic: text for topic, text in zip(topics, found, strict=True) if text is not None})
        self.read, self._invalid = now, None  # time of the request: the selector might have changed since

    async def read_again(self, admin: Admin) -> None:
        """Read the selectors for consumers that are open; report an invalid one once."""
        try:
            await self.read_from(admin)
        except JMSError as error:  # the connection continues
            if self._invalid != str(error):
                self._invalid = str(error)
                self._reader.reports.add(error, about=log_fields(subscription=self.subscription.name))

    def _update(self, texts: dict[str, str]) -> None:
        if texts != {topic: selector.text for topic, selector in self.by_topic.items()}:
            name = self.subscription.name
            self.by_topic = {topic: _parsed(text, name) for topic, text in texts.items()}
            text, about = "subscription %s has the selector %s", log_fields(subscription=name)
            _log.info(text, name, self.text or "of its consumers", extra=about)
            for selector in self.by_topic.values():
                if selector.difference is not None:
                    self._reader.reports.warn_once(
                        f"the selector {shown(selector.text)} of subscription {name} is not applied to received "
                        "messages, of which a batch can contain some that it excludes, because JMS differs from the "
                        f"broker's filter plugin: {selector.difference}"
                    )


@attrs.define(eq=False)
class SelectorReader:
    """Reads the selectors of the subscriptions that a connection consumes; without ``admin`` they are unknown."""

    admin: Admin | None
    timers: LoopTimers
    period: float  # seconds between two readings, 0: read once (``jms.refreshServerSideFiltersPeriod``)
    reports: ExceptionReports
    _known: WeakValueDictionary[object, SubscriptionSelectors] = attrs.field(factory=WeakValueDictionary, init=False)
    _due: set[SubscriptionSelectors] = attrs.field(factory=set, init=False)
    _some_due: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _not_before: float = attrs.field(default=-inf, init=False)
    _failures: set[type[Exception]] = attrs.field(factory=set, init=False)
    _plugin_missing: bool = attrs.field(default=False, init=False)

    async def open(self, subscription: Subscription) -> SubscriptionSelectors:
        """Return the selectors for a new consumer; warn once if the broker lacks the plugin that should run one."""
        key = (subscription.identity, subscription.metadata.get(DESTINATION_TYPE))
        selectors = self._known.get(key)
        if selectors is None:
            selectors = SubscriptionSelectors(subscription, self)
            self._known[key] = selectors
        if self.admin is not None and not self._resting:
            await selectors.read_from(self.admin)
            if selectors.by_topic or SELECTOR in subscription.metadata:
                await self._look_for_plugin(self.admin, subscription)
        return selectors

    @property
    def _resting(self) -> bool:
        """Whether consumers don't wait for a reading, because the admin interface recently did not answer."""
        return self.timers.clock.steady() < self._not_before

    def hurry(self, selectors: Iterable[SubscriptionSelectors] | None = None) -> None:
        if self.admin is not None:  # otherwise those of closed consumers would be kept
            self._due.update(self._known.values() if selectors is None else selectors)
            self._some_due.set()

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            if self.period > 0:
                group.start_soon(self._hurry_each_period)
            while True:
                await self._some_due.wait()
                self._some_due.clear()
                while self._due and self.admin is not None:
                    await self._due.pop().read_again(self.admin)

    async def _hurry_each_period(self) -> None:
        while True:
            await self.timers.sleep(self.period)
            self.hurry()

    def failed(self, subscription: Subscription, error: Exception, until: float) -> None:
        """Warn of a failed reading, once per type of error: a client without permission fails on every subscription."""
        if isinstance(error, TimeoutError) or is_away(error):
            self._not_before = until
        text = (
            f"the properties of subscription {subscription.name} can't be read: {str(error) or 'no answer'}; if an "
            "operator has set a selector there, a batch can contain messages that it excludes"
        )
        if type(error) in self._failures:
            _log.info("%s", text, extra={**self.reports.where(), **log_fields(subscription=subscription.name)})
            return
        self._failures.add(type(error))
        self.reports.warn_once(text)

    async def _look_for_plugin(self, admin: Admin, subscription: Subscription) -> None:
        if self._plugin_missing or self._resting:
            return
        try:
            with anyio.fail_after(_LONGEST):
                for topic in await list_topics(admin, subscription):
                    if PLUGIN not in await admin.entry_filters(topic):
                        self._plugin_missing = True
                        self.reports.warn_once(
                            f"the broker does not filter {topic}: it has no filter plugin, so the client filters what "
                            "it receives. To install it, write it with 'jmsaio broker filter FOLDER', and start the "
                            "broker with entryFilterNames=jms and entryFiltersDirectory=FOLDER (the embedded broker: "
                            "filters=true)"
                        )
                        return
        except (JMSError, TimeoutError) as error:
            text, name = "whether the broker filters for subscription %s is not known: %s", subscription.name
            _log.info(text, name, error, extra={**self.reports.where(), **log_fields(subscription=name)})


async def _text(admin: Admin, topic: str, name: str) -> str | None:
    try:
        properties = await admin.subscription_properties(topic, name)
    except NotFoundError:
        return None
    return properties.get(SELECTOR) or None if properties.get(FILTERING) == "true" else None


def _parsed(text: str, name: str) -> PluginSelector:
    try:
        return plugin_selector(text)
    except InvalidSelectorError as error:
        reason = f"the selector that is set on subscription {name} can't be read: {error}"
        raise InvalidSelectorError(reason, text=text, column=error.column) from error


async def set_selector(
    transport: Transport,
    config: Configuration,
    timers: LoopTimers,
    reports: ExceptionReports,
    subscription: str | None,
    destination: Destination,
    selector: str | None,
) -> None:
    """Set or remove the selector of a queue's subscription, or of a topic's, which has the name ``subscription``."""
    admin, resolved = transport.admin, resolve(destination, config.system_namespace)
    is_queue = isinstance(destination, Queue)
    if admin is None:
        raise IllegalStateError("setting a selector needs the admin interface; set jms.usePulsarAdmin=true")
    if not resolved.topics or (subscription is None) is not is_queue:
        raise InvalidDestinationError(
            f"a selector is set on a durable subscription of a topic, by its name, or on that of a queue, without a "
            f"name; not on {destination!r} with the name {shown(subscription)}"
        )
    difference = plugin_selector(selector).difference if selector else None
    if difference is not None:
        reports.warn_once(
            f"the selector {shown(selector)} follows the rules of the filter plugin, not those of JMS: {difference}. "
            "Clients don't apply it, so that a batch can contain messages that it excludes"
        )
    name = config.queue_subscription(subscription or resolved.subscription)
    for topic in resolved.topics:
        if is_queue and config.precreate_queue_subscription:
            await precreate(transport, config, topic, name, timers)
        properties = {**await admin.subscription_properties(topic, name), FILTERING: "true" if selector else "false"}
        properties.pop(SELECTOR, None)
        if selector:
            properties[SELECTOR] = selector
        await admin.set_subscription_properties(topic, name, properties)
