"""Transactions of the model cluster: their coordinators, and what a topic and a subscription know of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from jmsaio.protocol.commands import TxnAction
from jmsaio.protocol.metadata import TxnId
from jmsaio.transport.pulsar.wire.transactions.transaction import TOPIC
from tests.protocol.server_errors import ServerError
from tests.simulation.storage import Fields, Topic

if TYPE_CHECKING:
    from tests.simulation.cluster import Broker, Cluster

#: Number of coordinators.
COUNT = 2
#: What came of ending one: its id's answer, or the code of an error.
Answer = Callable[[Fields | ServerError], None]


@attrs.define(eq=False)
class Transaction:
    """A transaction, which its coordinator forgets when it has ended.

    Attributes:
        txn: its id.
        parts: topics it was added to, with the subscription or None.
        ending: whether its end has begun.
        ended: whether it has ended.
        committed: whether it was, or is to be, committed.
    """

    txn: TxnId
    parts: dict[tuple[str, str | None], None] = attrs.field(factory=dict)
    ending: bool = False
    ended: bool = False
    committed: bool = False


class Coordinators:
    """The coordinators. What they know is stored, and survives their brokers.

    Args:
        cluster: where they are.

    Attributes:
        all: every transaction that ever was, by its id.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.all: dict[TxnId, Transaction] = {}
        self._cluster = cluster
        cluster.partitions[TOPIC] = COUNT

    def connect(self, broker: Broker, fields: Fields) -> Fields | ServerError:
        """TC_CLIENT_CONNECT: let the broker be the coordinator, if it has the topic."""
        return {} if self._serves(broker, fields["tc_id"]) else ServerError.ServiceNotReady

    def _serves(self, broker: Broker, number: int) -> bool:
        topic = self._cluster.topic(f"{TOPIC}-partition-{number}")
        return topic.owner == broker.name and not topic.moving

    def begin(self, broker: Broker, fields: Fields) -> Fields | ServerError:
        """NEW_TXN."""
        number = fields.get("tc_id") or 0
        if not self._serves(broker, number):
            return ServerError.TransactionCoordinatorNotFound
        txn = TxnId(number, sum(each.most == number for each in self.all))
        made = self.all[txn] = Transaction(txn)
        self._cluster.network.loop.call_later(fields["txn_ttl_seconds"] / 1000, self._time_out, made)
        return _id(txn)

    def _time_out(self, one: Transaction) -> None:
        if not one.ending:
            self._cluster.note(f"the time of transaction {tuple(one.txn)} is over")
            self._begin_end(one, False, lambda answer: None)

    def add(self, broker: Broker, fields: Fields) -> Fields | ServerError:
        """ADD_PARTITION_TO_TXN and ADD_SUBSCRIPTION_TO_TXN."""
        one = self._open(broker, fields)
        if not isinstance(one, Transaction):
            return one
        if one.ending:
            return ServerError.InvalidTxnStatus
        one.parts |= {(topic, None): None for topic in fields.get("partitions", ())}
        one.parts |= {(each["topic"], each["subscription"]): None for each in fields.get("subscription", ())}
        return _id(one.txn)

    def end(self, broker: Broker, fields: Fields, answer: Answer) -> None:
        """END_TXN: answered when all topics and subscriptions have ended it."""
        one = self._open(broker, fields)
        if not isinstance(one, Transaction):
            answer(one)
        elif one.ending:
            answer(ServerError.InvalidTxnStatus)
        else:
            self._begin_end(one, fields["txn_action"] == TxnAction.COMMIT, answer)

    def _open(self, broker: Broker, fields: Fields) -> Transaction | ServerError:
        txn = txn_of(fields)
        assert txn is not None
        if not self._serves(broker, txn.most):
            return ServerError.TransactionCoordinatorNotFound
        one = self.all[txn]
        return ServerError.TransactionNotFound if one.ended else one

    def _begin_end(self, one: Transaction, commit: bool, answer: Answer) -> None:
        one.ending, one.committed = True, commit
        self._end_parts(one, list(one.parts), answer)

    def _end_parts(self, one: Transaction, left: list[tuple[str, str | None]], answer: Answer) -> None:
        """End it in the topics and subscriptions that are left, one after another, and forget it."""
        loop = self._cluster.network.loop
        if not left:
            one.ended = True
            answer(_id(one.txn))
            return
        (name, subscription), *others = left
        topic, wait = self._cluster.topic(name), 0.1
        if self._cluster.owner_of(topic) is not None:  # else it is between two brokers
            mine = [each for each in self.all.values() if each.txn.most == one.txn.most]
            oldest = min(each.txn.least for each in mine if not each.ended)
            topic.end(one.txn, subscription, one.committed, [each.txn for each in mine if each.txn.least < oldest])
            left, wait = others, self._cluster.random.uniform(0.0, 0.01)
        loop.call_later(wait, self._end_parts, one, left, answer)

    def check(self, topic: Topic, subscription: str | None, txn: TxnId) -> None:
        """Note what comes to a topic or subscription that the transaction does not know: nothing ends it there."""
        if (topic.name, subscription) not in self.all[txn].parts:
            part = topic.name if subscription is None else f"{subscription} of {topic.name}"
            self._cluster.wrong(f"{part} was not added to transaction {tuple(txn)}, which comes to it")

    @property
    def left(self) -> list[str]:
        """Those that are open."""
        return [f"transaction {tuple(one.txn)}" for one in self.all.values() if not one.ended]


def txn_of(fields: Fields) -> TxnId | None:
    """Return the id of the transaction of a command, or None."""
    most, least = fields.get("txnid_most_bits"), fields.get("txnid_least_bits")
    return None if most is None or least is None else TxnId(most, least)


def _id(txn: TxnId) -> Fields:
    return {"txnid_most_bits": txn.most, "txnid_least_bits": txn.least}
