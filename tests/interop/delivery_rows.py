"""The rows of delivery: priority, delay, expiry, redelivery, dead letters, replies, browsers, transactions."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from jmsaio.model.wire import FAILED_DELIVERIES
from tests.codec.cases import value
from tests.interop.comparing import bodies, bodies_of, compare, same, text, texts
from tests.interop.matrix import COLUMNS, FROM_JAVA, FROM_PYTHON, TO_JAVA, Cell, Row
from tests.interop.sides import Described, PythonSide
from tests.interop.subscription_rows import by_partition

#: Seconds to wait for a message that must not come, and for all that a consumer fetches in advance.
_ABSENT, _FETCHED = 1.0, 3.0
#: User and password.
_CREDENTIALS = ("bob", "the password")


async def by_priority(cell: Cell) -> None:
    """What the receiver has fetched arrives by priority. A Java consumer fetches from its first receive on."""
    await cell.receiver.subscribe(cell.queue())
    await cell.sender.send(cell.queue(), text("first"))
    same("the first", bodies(await cell.receiver.receive()), ["first"])
    items = [text(f"p{priority}", options={"priority": priority}) for priority in (4, 0, 9, 2, 7)]
    await cell.sender.send(cell.queue(), *items)
    await asyncio.sleep(_FETCHED)
    same("order", bodies(await cell.receiver.receive(5)), ["p9", "p7", "p4", "p2", "p0"])


async def linear(cell: Cell) -> None:
    """Ten priorities are spread over four partitions, and the last one has the highest."""
    items = [text(str(priority), options={"priority": priority}) for priority in range(10)]
    found = await by_partition(cell, cell.queue(), 4, items)
    same("partitions", found, {str(priority): int("0001122233"[priority]) for priority in range(10)})


async def non_linear(cell: Cell) -> None:
    """Of four partitions the first has the low priorities, the last one the high ones, and two have the default."""
    items = [text(str(priority), options={"priority": priority}) for priority in range(10)]
    found = await by_partition(cell, cell.queue(), 4, items)
    assert found.pop("4") in (1, 2)
    same("partitions", found, {str(n): 0 if n < 4 else 3 for n in (0, 1, 2, 3, 5, 6, 7, 8, 9)})


async def delayed(cell: Cell) -> None:
    """A message with a delay arrives after it (but for the broker's tick), and after one that was sent later."""
    await _delayed(cell, cell.queue())


async def delayed_shared(cell: Cell) -> None:
    """Likewise on a topic, with a shared subscription."""
    await _delayed(cell, cell.topic(), mode="shared_durable", subscription=cell.subscription())


async def delayed_topic(cell: Cell) -> None:
    """Likewise with a consumer of its own."""
    await _delayed(cell, cell.topic())


async def _delayed(cell: Cell, place: Described, **subscription: Any) -> None:
    await cell.receiver.subscribe(place, **subscription)
    begin = time.monotonic()
    late = text("late", options={"delivery_delay": 3000})
    [header] = await cell.sender.send(place, late)
    await cell.sender.send(place, text("soon"))
    found = await cell.receiver.receive(2)
    passed = time.monotonic() - begin
    same("order", bodies(found), ["soon", "late"])
    compare(late, header, found[1])
    assert passed > 2.7, f"it arrived after {passed:.1f} s"


async def delivery_time(cell: Cell) -> None:
    """JMSDeliveryTime is the time of the send and the delay."""
    await cell.receiver.subscribe(cell.queue())
    await cell.sender.send(cell.queue(), text("late", options={"delivery_delay": 500}))
    [found] = await cell.receiver.receive()
    same("JMSDeliveryTime", found["headers"]["delivery_time"], found["headers"]["timestamp"] + 500)


async def expired(cell: Cell) -> None:
    """An expired message does not arrive."""
    await cell.sender.send(cell.queue(), text("expires", options={"time_to_live": 1}))
    await asyncio.sleep(0.1)
    await cell.sender.send(cell.queue(), text("stays", options={"time_to_live": 600_000}))
    await cell.receiver.subscribe(cell.queue())
    same("what arrives", bodies(await cell.receiver.receive()), ["stays"])
    same("what is left", await cell.receiver.receive(timeout=_ABSENT), [])


async def _delivered(cell: Cell, header: Described, delivery: int) -> None:
    """The next message is the one with this header, marked and counted as this delivery of it."""
    [found] = await cell.receiver.receive()
    compare(text("x"), header, found)
    same("JMSRedelivered", found["headers"]["redelivered"], delivery > 1)
    same("JMSXDeliveryCount", int(found["properties"]["JMSXDeliveryCount"]["v"]), delivery)


async def recovered(cell: Cell) -> None:
    """What was not acknowledged comes again, marked and counted; what was acknowledged does not."""
    await cell.receiver.subscribe(cell.queue())
    [header] = await cell.sender.send(cell.queue(), text("x"))
    for delivery in (1, 2):
        await _delivered(cell, header, delivery)
        await cell.receiver.end("recover" if delivery == 1 else "acknowledge")
    await cell.receiver.close_consumer()
    await cell.receiver.subscribe(cell.queue(), "again")
    same("what is left", await cell.receiver.receive(1, "again", timeout=_ABSENT), [])


async def counted(cell: Cell) -> None:
    """Each recover adds one to the count of a shared subscription."""
    await cell.receiver.subscribe(cell.topic(), mode="shared_durable", subscription=cell.subscription())
    await cell.sender.send(cell.topic(), text("x"))
    for delivery in (1, 2, 3):
        [found] = await cell.receiver.receive()
        same("JMSXDeliveryCount", int(found["properties"]["JMSXDeliveryCount"]["v"]), delivery)
        await cell.receiver.end("recover")


async def count_type(cell: Cell) -> None:
    """JMSXDeliveryCount is an int."""
    await cell.receiver.subscribe(cell.queue())
    await cell.sender.send(cell.queue(), text("x"))
    [found] = await cell.receiver.receive()
    same("JMSXDeliveryCount", found["properties"]["JMSXDeliveryCount"], value("int", 1))


async def timed_out(cell: Cell) -> None:
    """What is not acknowledged in time comes again, marked and counted; what is acknowledged does not."""
    await cell.receiver.subscribe(cell.queue())
    [header] = await cell.sender.send(cell.queue(), text("x"))
    for delivery in (1, 2):
        await _delivered(cell, header, delivery)
    await cell.receiver.end("acknowledge")
    same("what is left", await cell.receiver.receive(timeout=4), [])


async def returned(cell: Cell) -> None:
    """What a consumer of the sender's client had when its session closed arrives at another client, marked."""
    await cell.sender.subscribe(cell.queue())
    await cell.sender.send(cell.queue(), text("x"))
    same("the first", bodies(await cell.sender.receive()), ["x"])
    await cell.sender.end("close")
    await cell.receiver.subscribe(cell.queue())
    [found] = await cell.receiver.receive()
    same("JMSRedelivered", found["headers"]["redelivered"], True)


async def authorized(cell: Cell) -> None:
    """A connection takes the right user and password, and refuses all others."""
    user, password = _CREDENTIALS
    for side in (cell.sender, cell.receiver):
        accepted, *refused = await side.connect((user, password), (user, "wrong"), ("wrong", password))
        same("the right ones", accepted, "")
        assert all("JMSSecurity" in each for each in refused), f"the wrong ones: {refused}"


async def dead_letter(cell: Cell) -> None:
    """A message that failed too often is a dead letter, read by the sender's client: all but its id is the same.

    A receiver in Python adds the number of failed deliveries, which a sender in Java reads, too.
    """
    item, header, letter = await _become_dead_letter(cell)
    compare(item, {**header, "message_id": letter["headers"]["message_id"]}, letter, extra=True)
    failures = value("int", 2) if isinstance(cell.receiver, PythonSide) else None
    same(FAILED_DELIVERIES, letter["properties"].get(FAILED_DELIVERIES), failures)


async def dead_letter_id(cell: Cell) -> None:
    """A dead letter has the id of the message."""
    _, header, letter = await _become_dead_letter(cell)
    same("JMSMessageID", letter["headers"]["message_id"], header["message_id"])


async def _become_dead_letter(cell: Cell) -> tuple[Described, Described, Described]:
    """A message, its headers after the send, and its dead letter."""
    place = cell.queue()
    letters = {"kind": "queue", "name": f"persistent://public/default/{place['name']}-jms-queue-DLQ"}
    await cell.sender.subscribe(letters, "letters")
    await cell.receiver.subscribe(place)
    item = text("fails", properties={"n": value("long", 7)}, headers={"type": "order", "correlation_id": "c"})
    [header] = await cell.sender.send(place, item)
    for delivery in (1, 2):
        [found] = await cell.receiver.receive()
        same("JMSXDeliveryCount", int(found["properties"]["JMSXDeliveryCount"]["v"]), delivery)
        await cell.receiver.end("recover")
    [letter] = await cell.sender.receive(1, "letters")
    return item, header, letter


async def replied(cell: Cell, answers: Described) -> None:
    """A request is answered to its JMSReplyTo, with its correlation id."""
    await cell.sender.subscribe(answers, "answers")
    await cell.receiver.subscribe(cell.queue())
    request = text("ping", headers={"reply_to": answers, "correlation_id": "c-1"})
    [header] = await cell.sender.send(cell.queue(), request)
    [found] = await cell.receiver.receive()
    compare(request, header, found)
    reply = text("pong", headers={"correlation_id": found["headers"]["correlation_id"]})
    [header] = await cell.receiver.send(found["headers"]["reply_to"], reply)
    [answer] = await cell.sender.receive(1, "answers")
    compare(reply, header, answer)
    same("JMSCorrelationID", answer["headers"]["correlation_id"], "c-1")


async def replied_to_queue(cell: Cell) -> None:
    """To a queue."""
    await replied(cell, cell.queue("answers"))


async def replied_to_topic(cell: Cell) -> None:
    """To a topic."""
    await replied(cell, cell.topic("answers"))


async def replied_to_temporary(cell: Cell) -> None:
    """To a temporary queue of the sender."""
    await replied(cell, await cell.sender.temporary("queue"))


async def replied_to_temporary_topic(cell: Cell) -> None:
    """To a temporary topic of the sender."""
    await replied(cell, await cell.sender.temporary("topic"))


async def browsed(cell: Cell) -> None:
    """A browser shows what was sent, field by field and in order, and takes nothing."""
    items = texts(5)
    headers = await cell.sender.send(cell.queue(), *items)
    for _ in range(2):
        found = await cell.receiver.browse(cell.queue())
        for item, header, message in zip(items, headers, found, strict=True):
            compare(item, header, message)
    await cell.receiver.subscribe(cell.queue())
    same("what is there", bodies(await cell.receiver.receive(5)), bodies_of(items))


def delivery_rows() -> list[Row]:
    """Priority, delay, expiry, redelivery, dead letters, replies, browsers."""
    priorities = {"jms.enableJMSPriority": True}
    # A Java consumer that is closed while it gives messages back may reset its connection: not that of other rows.
    apart = {"consumerConfig": {"negativeAckRedeliveryDelayMicros": 1_000_000}}
    soon = {"negativeAckRedeliveryDelayMicros": 100_000}
    policy = {"consumerConfig": {"deadLetterPolicy": {"maxRedeliverCount": 1}, **soon}}
    return [
        Row(group="Delivery", name="by priority", run=by_priority, configuration=priorities),
        Row(group="Delivery", name="partitions by priority, linear", run=linear, configuration=priorities),
        Row(
            group="Delivery",
            name="partitions by priority, non-linear",
            run=non_linear,
            configuration=priorities | {"jms.priorityMapping": "non-linear"},
        ),
        Row(group="Delivery", name="delivery delay", run=delayed),
        Row(group="Delivery", name="delivery delay, shared durable", run=delayed_shared),
        Row(
            group="Delivery",
            name="delivery delay, topic",
            run=delayed_topic,
            differs=dict.fromkeys(COLUMNS[:3], "order: ['late', 'soon'] arrived"),
            line="Java writes the send time as JMSDeliveryTime, even with a delay",
        ),
        Row(
            group="Delivery",
            name="JMSDeliveryTime has the delay",
            run=delivery_time,
            differs=dict.fromkeys(FROM_JAVA, "JMSDeliveryTime: "),
            line="JMSDeliveryTime",
        ),
        Row(group="Delivery", name="time to live", run=expired, configuration=apart),
        Row(group="Delivery", name="recover", run=recovered, receiver="client"),
        Row(group="Delivery", name="JMSXDeliveryCount, shared durable", run=counted, receiver="client"),
        Row(
            group="Delivery",
            name="JMSXDeliveryCount is an int",
            run=count_type,
            differs=dict.fromkeys(TO_JAVA, "JMSXDeliveryCount: "),
            line="`JMSXDeliveryCount`",
        ),
        Row(
            group="Delivery",
            name="acknowledge time-out",
            run=timed_out,
            receiver="client",
            configuration={"consumerConfig": {"ackTimeoutMillis": 3_000}},
        ),
        Row(
            group="Delivery",
            name="returned by a close, JMSRedelivered",
            run=returned,
            sender="client",
            apart=True,
            differs=dict.fromkeys(COLUMNS[:3], "JMSRedelivered: "),  # in one process jmsaio knows what it returned
            line="messages that a close returns",
        ),
        Row(group="Delivery", name="dead letter", run=dead_letter, receiver="client", configuration=policy),
        Row(
            group="Delivery",
            name="JMSMessageID of a dead letter",
            run=dead_letter_id,
            receiver="client",
            configuration=policy,
            differs=dict.fromkeys(FROM_JAVA, "JMSMessageID: "),
            line="JMSMessageID",
        ),
        Row(group="Delivery", name="reply to a queue", run=replied_to_queue),
        Row(group="Delivery", name="reply to a topic", run=replied_to_topic),
        Row(group="Delivery", name="reply to a temporary queue", run=replied_to_temporary),
        Row(group="Delivery", name="reply to a temporary topic", run=replied_to_temporary_topic),
        Row(group="Delivery", name="browser", run=browsed),
        Row(
            group="Delivery",
            name="user and password, jms.tckUsername",
            run=authorized,
            configuration={"jms.tckUsername": _CREDENTIALS[0], "jms.tckPassword": _CREDENTIALS[1]},
        ),
    ]


async def committed(cell: Cell) -> None:
    """What was sent arrives after the commit."""
    await cell.receiver.subscribe(cell.queue())
    headers = await cell.sender.send(cell.queue(), *texts(3))
    await cell.sender.end("commit")
    for item, header, message in zip(texts(3), headers, await cell.receiver.receive(3), strict=True):
        compare(item, header, message)


async def sends_rolled_back(cell: Cell) -> None:
    """What was sent does not arrive after a rollback."""
    await cell.receiver.subscribe(cell.queue())
    await cell.sender.send(cell.queue(), *texts(3, "undone"))
    await cell.sender.end("rollback")
    await cell.sender.send(cell.queue(), text("done"))
    await cell.sender.end("commit")
    same("what arrives", bodies(await cell.receiver.receive()), ["done"])
    same("what is left", await cell.receiver.receive(timeout=_ABSENT), [])


async def receives_rolled_back(cell: Cell) -> None:
    """What was received comes again after a rollback, and not after a commit."""
    await cell.receiver.subscribe(cell.queue())
    headers = await cell.sender.send(cell.queue(), *texts(2))
    await cell.sender.end("commit")
    for redelivered, how in ((False, "rollback"), (True, "commit")):
        found = sorted(await cell.receiver.receive(2), key=lambda message: str(message["body"]["v"]))
        for item, header, message in zip(texts(2), headers, found, strict=True):
            compare(item, header, message)
            same("JMSRedelivered", message["headers"]["redelivered"], redelivered)
        await cell.receiver.end(how)
    same("what is left", await cell.receiver.receive(timeout=_ABSENT), [])


async def shared_by_two(cell: Cell) -> None:
    """Two transacted sessions share a queue: what one commits is gone, what the other rolls back comes again, once."""
    for side in (cell.sender, cell.receiver):
        await side.subscribe(cell.queue())
    sent = [f"shared{number}" for number in range(20)]
    for name in sent:
        await cell.sender.send(cell.queue(), text(name))  # one entry each, so that both get some
    await cell.sender.end("commit")
    kept, undone = [bodies(await side.receive(len(sent), timeout=_FETCHED)) for side in (cell.sender, cell.receiver)]
    same("received by either", sorted(kept + undone), sorted(sent))
    await cell.sender.end("commit")
    await cell.receiver.end("rollback")
    again: list[Any] = []
    for side in (cell.receiver, cell.sender):
        again += bodies(await side.receive(len(sent), timeout=_ABSENT))
        await side.end("commit")
    same("after the rollback", sorted(again), sorted(undone))


async def passed_on(cell: Cell) -> None:
    """What a session receives and sends on in one transaction is there once, before or behind."""
    await cell.sender.send(cell.queue(), text("passed"))
    await cell.sender.end("commit")
    await cell.receiver.subscribe(cell.queue())
    await cell.sender.subscribe(cell.queue("on"))
    for how in ("rollback", "commit"):
        same("the first queue", bodies(await cell.receiver.receive()), ["passed"])
        await cell.receiver.send(cell.queue("on"), text(how))
        same("the second queue", await cell.sender.receive(timeout=_ABSENT), [])
        await cell.receiver.end(how)
    same("the second queue", bodies(await cell.sender.receive()), ["commit"])
    same("what is left", await cell.receiver.receive(timeout=_ABSENT), [])


async def held_back(cell: Cell) -> None:
    """What a client sends while a transaction of another one is open arrives before its end."""
    await cell.receiver.subscribe(cell.queue())
    await cell.sender.send(cell.queue(), text("of the transaction"))
    await cell.receiver.send(cell.queue(), text("after it"))
    found = bodies(await cell.receiver.receive(2, timeout=4))
    await cell.sender.end("commit")
    assert "after it" in found, f"held back: {found}"


def transaction_rows() -> list[Row]:
    """Transacted sessions: the broker's transactions, and emulated ones of Python."""
    native: dict[str, Any] = {
        "configuration": {"enableTransaction": True}, "sender": "transacted", "receiver": "transacted",
    }  # fmt: skip
    emulated: dict[str, Any] = {
        "java": {"enableTransaction": True}, "python": {"jms.emulateTransactions": True}, "sender": "transacted",
    }  # fmt: skip
    return [
        Row(group="Transactions", name="sent and committed", run=committed, **native),
        Row(group="Transactions", name="sent and rolled back", run=sends_rolled_back, **native),
        Row(group="Transactions", name="received and rolled back, then committed", run=receives_rolled_back, **native),
        Row(group="Transactions", name="received and sent on, rolled back, then committed", run=passed_on, **native),
        Row(group="Transactions", name="two sessions of one queue", run=shared_by_two, **native),
        Row(
            group="Transactions", name="sent by others while one is open", run=held_back,
            differs=dict.fromkeys(COLUMNS, "held back: []"), line="an open transaction",
            **{**native, "receiver": "auto"},
        ),
        Row(group="Transactions", name="emulated in Python: sent and committed", run=committed, **emulated),
        Row(
            group="Transactions", name="emulated in Python: sent and rolled back", run=sends_rolled_back,
            line="emulated transactions", differs=dict.fromkeys(FROM_PYTHON, "what arrives: ['undone0'] arrived"),
            **emulated,
        ),
        Row(
            group="Transactions", name="emulated in Python: received and rolled back, then committed",
            run=receives_rolled_back, **{**emulated, "receiver": "transacted"},
        ),
    ]  # fmt: skip
