"""``Restoring``: recreates the subscriptions of queues whose topic was deleted while messages were being sent to it.

pulsar-client recreates a deleted topic, but not the queue's subscription, without which no message is stored. It
recreates the partitions of a partitioned topic as topics of their own, which the log names.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

import anyio
import attrs

from jmsaio.config import Configuration
from jmsaio.errors import JMSError, NotFoundError
from jmsaio.model.partitions import split_partition
from jmsaio.model.temporary_names import is_temporary
from jmsaio.transport.base import Transport
from jmsaio.transport.clock import LoopTimers
from jmsaio.transport.subscriptions import precreate

_log = logging.getLogger("jmsaio")

#: Maximum number of topics checked concurrently: when a broker starts, many might have changed.
_AT_ONCE = 4


@attrs.define(eq=False)
class Restoring:
    """Recreates missing subscriptions of the queues to which one pool of senders sends."""

    transport: Transport
    config: Configuration
    timers: LoopTimers
    _changed: dict[str, Collection[str]] = attrs.field(factory=dict, init=False)  # subscriptions by topic
    _left: set[str] = attrs.field(factory=set, init=False)  # topics whose check has begun and not ended
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    def topic_changed(self, subscriptions: Collection[str], topic: str) -> None:
        """Create missing subscriptions of a topic's queues, because the topic might have been recreated."""
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
            for name in tuple(subscriptions):  # more can be added meanwhile
                try:
                    if await precreate(self.transport, self.config, topic, name, self.timers):
                        await self._log_missing(topic, name)
                except JMSError as error:
                    _log.error(
                        "subscription %s of the queue %s might be gone with its topic and can't be recreated, so the "
                        "queue keeps nothing until a consumer opens: %s", name, topic, error
                    )  # fmt: skip
            self._left.discard(topic)

    async def _log_missing(self, topic: str, name: str) -> None:
        """Log that a subscription was missing."""
        whole, partition = split_partition(topic)
        if partition < 0 or await self._has_partitions(whole):
            _log.warning(
                "%s was deleted while messages were being sent to it; its queue's subscription %s was recreated",
                topic,
                name,
            )
            return
        _log.error(
            "%s, a partitioned topic, was deleted while messages were being sent to it. New messages go to the queue "
            "%s, and consumers of %s that open now don't get them: stop its producers, empty and delete the topics of "
            "its partitions, and recreate it", whole, topic, whole
        )  # fmt: skip

    async def _has_partitions(self, topic: str) -> bool:
        admin = self.transport.admin
        assert admin is not None  # otherwise a missing subscription can't be detected
        try:
            return await admin.partitions(topic) > 0
        except NotFoundError:
            return False

    async def aclose(self, timeout: float) -> None:
        """Wait up to ``timeout`` seconds for the checks to end; log the topics whose check did not."""
        task = self._task
        if task is None:
            return
        try:
            await asyncio.wait({task}, timeout=max(0.0, timeout))
        finally:
            task.cancel()
            for topic in sorted(self._left | self._changed.keys()):
                _log.error(
                    "the connection was closed before the subscriptions of the queue %s could be checked: if its topic "
                    "was deleted, the queue keeps nothing until a consumer opens", topic
                )  # fmt: skip
        await asyncio.wait({task})
