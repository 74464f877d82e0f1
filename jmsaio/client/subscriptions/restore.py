"""``Restoring``: makes the subscriptions of queues again whose topic was deleted while it was being sent to.

pulsar-client recreates a deleted topic by itself, but not the queue's subscription: no one would keep what is sent.
Of a topic with partitions it makes each partition anew, as a topic for itself: then the log tells where they are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

import anyio
import attrs

from jmsaio.client.subscriptions.create import precreate
from jmsaio.config import Configuration
from jmsaio.errors import JMSError, NotFoundError
from jmsaio.model.partitions import split_partition
from jmsaio.model.temporary_names import is_temporary
from jmsaio.transport.base import Transport
from jmsaio.transport.clock import LoopTimers

_log = logging.getLogger("jmsaio")

#: Topics looked after at the same time: when a broker starts, many may have changed.
_AT_ONCE = 4


@attrs.define(eq=False)
class Restoring:
    """Looks after the queues that one cache of senders sends to."""

    transport: Transport
    config: Configuration
    timers: LoopTimers
    _changed: dict[str, Collection[str]] = attrs.field(factory=dict, init=False)  # subscriptions by topic
    _left: set[str] = attrs.field(factory=set, init=False)  # topics that were begun and are not ready
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    def topic_changed(self, subscriptions: Collection[str], topic: str) -> None:
        """A topic, or partition, may be another one than before: its queues' subscriptions are created if missing."""
        if not subscriptions or not self.config.precreate_queue_subscription or is_temporary(topic):
            return
        self._changed[topic] = subscriptions
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="jmsaio queue subscriptions")

    async def _run(self) -> None:
        limiter = anyio.CapacityLimiter(_AT_ONCE)
        try:
            while self._changed:
                changed, self._changed = self._changed, {}
                self._left.update(changed)
                async with anyio.create_task_group() as group:
                    for topic, subscriptions in changed.items():
                        group.start_soon(self._restore, topic, subscriptions, limiter)
        finally:
            self._task = None

    async def _restore(self, topic: str, subscriptions: Collection[str], limiter: anyio.CapacityLimiter) -> None:
        async with limiter:
            for name in sorted(subscriptions):
                try:
                    if await precreate(self.transport, self.config, topic, name, self.timers):
                        await self._tell(topic, name)
                except JMSError as error:
                    _log.error(
                        "subscription %s of the queue %s may be gone with its topic and can't be made again, so the "
                        "queue keeps nothing until a consumer opens: %s", name, topic, error
                    )  # fmt: skip
            self._left.discard(topic)

    async def _tell(self, topic: str, name: str) -> None:
        """Say that a subscription was missing."""
        whole, partition = split_partition(topic)
        if partition < 0 or await self._has_partitions(whole):
            _log.warning("%s was deleted while it was sent to; its queue's subscription %s was made anew", topic, name)
            return
        _log.error(
            "%s, which had partitions, was deleted while it was sent to. What is sent now lies in the queue %s, and "
            "consumers of %s that open now don't get it: stop its producers, empty and delete the topics of its "
            "partitions, and create it anew", whole, topic, whole
        )  # fmt: skip

    async def _has_partitions(self, topic: str) -> bool:
        admin = self.transport.admin
        if admin is None:
            return True
        try:
            return await admin.partitions(topic) > 0
        except NotFoundError:
            return False

    async def aclose(self, timeout: float) -> None:
        """Wait at most ``timeout`` seconds until all of them are there; the log tells of those that are not."""
        task = self._task
        if task is None:
            return
        try:
            await asyncio.wait({task}, timeout=max(0.0, timeout))
        finally:
            task.cancel()
            for topic in sorted(self._left | self._changed.keys()):
                _log.error(
                    "the connection was closed before it was known whether the subscriptions of the queue %s are still "
                    "there: its topic may have been deleted, and the queue keeps nothing until a consumer opens", topic
                )  # fmt: skip
        await asyncio.wait({task})
