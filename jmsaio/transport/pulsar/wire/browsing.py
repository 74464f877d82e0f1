"""What browsers need to know of queues, by the broker's protocol: without the REST interface."""

from __future__ import annotations

import anyio
import attrs

from jmsaio.config import ConsumerConfig
from jmsaio.errors import ConsumerBusyError
from jmsaio.model.topic_names import split_partition
from jmsaio.model.wire import WireId
from jmsaio.protocol.codes import SubType
from jmsaio.transport.base import Cursor, ReaderOptions
from jmsaio.transport.pulsar.wire.client import Client
from jmsaio.transport.pulsar.wire.reader import WireReader


@attrs.frozen(eq=False)
class Browsing:
    """Implements ``Browsable``.

    The broker reports the place of a subscription only to its consumers, and only where everything before it is
    acknowledged. So a consumer without permits joins the queue's subscription for a moment: it receives nothing, and
    leaves no trace. A subscription that does not exist is created, as by the queue's first consumer; a topic is not.
    On a key-shared subscription the messages of its keys wait until it has left.
    """

    _client: Client

    async def partitions(self, topic: str) -> int:
        """Return the number of partitions. See ``Browsable.partitions``."""
        return await self._client.topics.count(topic, create=False)

    async def topics(self, namespace: str) -> list[str]:
        """Return the names of the persistent topics of a namespace. See ``Browsable.topics``."""
        return await self._client.topics.of_namespace(namespace, "PersistentOnly")

    async def cursor(self, topic: str, subscription: str) -> Cursor:
        """Return the place of a subscription. See ``Browsable.cursor``."""
        kinds = [SubType.Shared, SubType.Key_Shared]
        if self._client.config.queue_subscription_type == "Key_Shared":
            kinds.reverse()
        try:
            return await self._cursor(topic, subscription, kinds[0])
        except ConsumerBusyError:  # it has consumers of the other type, which the queue's own options set
            return await self._cursor(topic, subscription, kinds[1])

    async def _cursor(self, topic: str, subscription: str, kind: SubType) -> Cursor:
        config = self._client.config
        joined = WireReader(
            self._client, ReaderOptions(topic, ConsumerConfig()), lambda reader: None, receiving=False,
            joins=(subscription, kind),
        )  # fmt: skip
        try:
            await joined.start(config.operation_timeout)
            last, before = await joined.ends(config.operation_timeout)
        finally:
            with anyio.CancelScope(shield=True):
                await joined.aclose(config.close_timeout)
        if before[1] >= 0:
            return Cursor(WireId(*before, split_partition(topic)[1]), (), last)
        return Cursor(None, (((0, 0), before),), last)  # before its ledger: ledgers before that one can be retained
