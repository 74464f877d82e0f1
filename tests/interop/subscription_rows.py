"""The rows of subscriptions and selectors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from tests.codec.cases import value
from tests.interop.comparing import arrive, bodies, bodies_of, compare, same, text, texts
from tests.interop.matrix import MIXED, TO_JAVA, Cell, Row
from tests.interop.sides import COMES, Described, Side

#: Seconds to wait for a message that must not come.
_ABSENT = 1.0
_SELECTED = "region = 'EU' AND amount > 3"
#: Selectors, and which of `_orders` match.
_SELECTORS = {
    "region = 'EU'": (0, 2, 4),
    "amount BETWEEN 2 AND 4": (2, 3, 4),
    "region IN ('US', 'ASIA') AND amount > 1": (3, 5),
    "region LIKE 'A%' OR weight < 1.5": (0, 5),
    "note IS NOT NULL": (4,),
    "JMSPriority > 6": (1,),
    "JMSType = 'order' AND JMSCorrelationID = 'c-3'": (3,),
    "urgent = TRUE": (2,),
}
#: Of three partitions the one of each group, by Java's ``String.hashCode``; that of the third is the smallest integer.
_PARTITION_OF_GROUP = {
    "grp": 2, "order-4711": 1, "polygenelubricants": 0,
    "gr\u00f6\u00dfe": 1, "\u540d": 1, "\U0001f600": 1, "Aa": 0, "BB": 0,
}  # fmt: skip
_NAMESPACE = "matrix"
#: Selectors that Starlight's engine and the specification understand differently.
_AMBIGUOUS = {"NOT amount = 1": (0, 2, 3, 4, 5), "amount / 2 = 1": (2, 3)}


async def plain_topic(cell: Cell) -> None:
    """Each side's consumer gets every message."""
    await cell.receiver.subscribe(cell.topic())
    await cell.sender.subscribe(cell.topic())
    await arrive(cell, cell.topic(), texts(5))
    same("the sender's own consumer", bodies(await cell.sender.receive(5)), bodies_of(texts(5)))


async def durable(cell: Cell) -> None:
    """What is sent while the subscription has no consumer arrives when it has one again."""
    for _ in range(2):
        await cell.receiver.subscribe(cell.topic(), mode="durable", subscription=cell.subscription())
        await cell.receiver.close_consumer()
    headers = await cell.sender.send(cell.topic(), *texts(3))
    await cell.receiver.subscribe(cell.topic(), mode="durable", subscription=cell.subscription())
    for item, header, message in zip(texts(3), headers, await cell.receiver.receive(3), strict=True):
        compare(item, header, message)


async def unsubscribed(cell: Cell) -> None:
    """What was sent before and after it was deleted does not arrive when the subscription is made again."""
    await cell.create_namespace(_NAMESPACE)
    await cell.receiver.subscribe(cell.topic(), mode="durable", subscription=cell.subscription())
    await cell.receiver.close_consumer()
    await cell.sender.send(cell.topic(), text("before"))
    await cell.receiver.unsubscribe(cell.subscription())
    await cell.sender.send(cell.topic(), text("between"))
    await cell.receiver.subscribe(cell.topic(), mode="durable", subscription=cell.subscription())
    await arrive(cell, cell.topic(), [text("after")])


async def not_local(cell: Cell) -> None:
    """Consumers with noLocal get what the other connection sends, and nothing of their own."""
    await cell.receiver.subscribe(cell.topic(), "plain", no_local=True)
    await cell.receiver.subscribe(cell.topic(), mode="durable", subscription=cell.subscription(), no_local=True)
    await cell.receiver.send(cell.topic(), text("own"))
    await arrive(cell, cell.topic(), [text("other")])
    same("a plain consumer", bodies(await cell.receiver.receive(1, "plain")), ["other"])


async def resumed(cell: Cell) -> None:
    """The receiver resumes what the sender's client has created, from where that one stopped."""
    await cell.sender.subscribe(cell.topic(), mode="durable", subscription=cell.subscription())
    await cell.sender.send(cell.topic(), *texts(5))
    same("the creator's messages", bodies(await cell.sender.receive(2)), ["m0", "m1"])
    await cell.sender.close_consumer()
    await cell.receiver.subscribe(cell.topic(), mode="durable", subscription=cell.subscription())
    same("the others", bodies(await cell.receiver.receive(3)), ["m2", "m3", "m4"])


def shared(target: str, mode: str = "plain") -> Callable[[Cell], Awaitable[None]]:
    """What a row runs whose consumers, one of each side, share the messages."""

    async def run(cell: Cell) -> None:
        place = cell.queue() if target == "queue" else cell.topic()
        for side in (cell.receiver, cell.sender):
            await side.subscribe(place, mode=mode, subscription=cell.subscription())
        sent: list[str] = []
        mine: list[str] = []
        theirs: list[str] = []
        begin = time.monotonic()
        while not (mine and theirs) and time.monotonic() - begin < COMES:  # a Java consumer fetches when it receives
            items = texts(20, f"{len(sent)}-")
            await cell.sender.send(place, *items)
            sent += bodies_of(items)
            more = await _share(len(items), {cell.sender: [""], cell.receiver: [""]})
            mine, theirs = mine + more[0], theirs + more[1]
            same("all, each once", sorted(mine + theirs), sorted(sent))
        assert mine and theirs, "one of them got all"

    return run


async def _share(count: int, consumers: Mapping[Side, Sequence[str]]) -> list[list[str]]:
    """What each consumer gets until they have ``count`` messages together, and what comes after that."""
    found: dict[tuple[Side, str], list[str]] = {(side, name): [] for side, names in consumers.items() for name in names}

    async def take(side: Side) -> None:
        for name in consumers[side]:  # a session has one thread
            found[side, name] += bodies(await side.receive(2 * count, name, timeout=_ABSENT))

    begin, last = time.monotonic(), False
    while not last:
        last = sum(map(len, found.values())) >= count or time.monotonic() - begin > COMES
        await asyncio.gather(*map(take, consumers))
    return list(found.values())


async def partitioned(cell: Cell) -> None:
    """All messages of four partitions, each group's in order."""
    await cell.create_topic(cell.queue(), 4)
    await cell.receiver.subscribe(cell.queue())
    items = [text(f"{group}{number}", properties=_group(group, number + 1)) for number in range(5) for group in "abcd"]
    headers = await cell.sender.send(cell.queue(), *items)
    found = await cell.receiver.receive(len(items))
    for group in "abcd":
        same(f"order of group {group}", [body for body in bodies(found) if body[0] == group], _numbered(group, 5))
    by_body = {message["body"]["v"]: message for message in found}
    for item, header in zip(items, headers, strict=True):
        compare(item, header, by_body[item["message"]["body"]["v"]])


async def grouped_by_hash(cell: Cell) -> None:
    """Each client sends a group to the partition that Java's hash of its name gives, whoever else sends to it."""
    items = [text(group, properties=_group(group, 1)) for group in _PARTITION_OF_GROUP]
    found = await by_partition(cell, cell.queue(), 3, items)
    same("partitions", found, _PARTITION_OF_GROUP)


async def by_partition(cell: Cell, place: Described, partitions: int, items: Sequence[Described]) -> dict[str, int]:
    """Send messages to a new topic with partitions; the number of the partition that has each, by its text."""
    await cell.create_topic(place, partitions)
    await cell.sender.send(place, *items)
    names = [place | {"name": f"{place['name']}-partition-{number}"} for number in range(partitions)]
    found = [bodies(await cell.receiver.browse(name)) for name in names]
    return {body: number for number, content in enumerate(found) for body in content}


async def grouped(cell: Cell) -> None:
    """Of two consumers each group has one, which gets all of it in order."""
    for consumer in ("one", "two"):
        await cell.receiver.subscribe(cell.topic(), consumer, mode="shared_durable", subscription=cell.subscription())
    groups = [f"g{number}-" for number in range(12)]
    items = [text(f"{group}{number}", properties=_group(group, number + 1)) for number in range(3) for group in groups]
    await cell.sender.send(cell.topic(), *items)
    found = await _share(len(items), {cell.receiver: ["one", "two"]})
    same("all, each once", sorted(found[0] + found[1]), sorted(bodies_of(items)))
    for group in groups:
        parts = [[body for body in each if body.startswith(group)] for each in found]
        assert sorted(parts) == [[], _numbered(group, 3)], f"group {group}: {parts}"
    assert found[0] and found[1], "one of them got all groups"


def _group(name: str, number: int) -> Described:
    return {"JMSXGroupID": value("string", name), "JMSXGroupSeq": value("int", number)}


def _numbered(stem: str, count: int) -> list[str]:
    return [f"{stem}{number}" for number in range(count)]


def subscription_rows() -> list[Row]:
    """Every kind of subscription."""
    in_turn = {"consumerConfig": {"receiverQueueSize": 1}}
    by_key = {"jms.topicSharedSubscriptionType": "Key_Shared"}
    return [
        Row(group="Subscriptions", name="queue shared by both", run=shared("queue"), configuration=in_turn),
        Row(group="Subscriptions", name="topic", run=plain_topic),
        Row(group="Subscriptions", name="durable", run=durable),
        Row(group="Subscriptions", name="durable, created by the sender's client", run=resumed),
        Row(
            group="Subscriptions", name="unsubscribe", run=unsubscribed,
            # Java looks for the subscription on every topic of its namespace.
            configuration={"jms.systemNamespace": f"public/{_NAMESPACE}"},
        ),
        Row(group="Subscriptions", name="noLocal", run=not_local, apart=True),
        Row(
            group="Subscriptions", name="shared durable, shared by both", configuration=in_turn,
            run=shared("topic", "shared_durable"),
        ),
        Row(
            group="Subscriptions", name="shared, shared by both", run=shared("topic", "shared"),
            configuration=in_turn, differs=dict.fromkeys(MIXED, "all, each once: "),
            line="a shared subscription that is not durable",
        ),
        Row(group="Subscriptions", name="partitions, groups in order", run=partitioned),
        Row(group="Subscriptions", name="partitions, each group in the one of its hash", run=grouped_by_hash),
        Row(group="Subscriptions", name="Key_Shared: a group to one consumer", run=grouped, configuration=by_key),
    ]  # fmt: skip


def orders() -> list[Described]:
    """Messages to select from."""
    regions = ("EU", "US", "EU", "US", "EU", "ASIA")
    items = []
    for number, region in enumerate(regions):
        properties = {
            "region": value("string", region), "amount": value("int", number), "weight": value("double", number + 1.0),
            "urgent": value("boolean", number == 2),
        }  # fmt: skip
        if number == 4:
            properties["note"] = value("string", "n")
        headers = {"type": "order", "correlation_id": f"c-{number}"}
        priority = {"priority": 9} if number == 1 else {}
        items.append(text(f"m{number}", properties=properties, headers=headers, options=priority))
    return [*items, text("end", properties={"mark": value("string", "end")})]


def selectors(matches: Mapping[str, Sequence[int]]) -> Callable[[Cell], Awaitable[None]]:
    """What a row runs that has a consumer for each selector, which gets what matches, and nothing else."""

    async def run(cell: Cell) -> None:
        for selector in matches:
            await cell.receiver.subscribe(cell.topic(), selector, selector=_with_end(selector))
        await cell.sender.send(cell.topic(), *orders())
        for selector, matching in matches.items():
            found: list[str] = []
            while found[-1:] != ["end"] and (more := await cell.receiver.receive(1, selector)):
                found += bodies(more)
            same(selector, found, [*(f"m{number}" for number in matching), "end"])

    return run


def _with_end(selector: str) -> str:
    return f"({selector}) OR mark = 'end'"


def selecting(target: str, mode: str = "plain") -> Callable[[Cell], Awaitable[None]]:
    """What a row runs whose consumer selects on another kind of subscription."""

    async def run(cell: Cell) -> None:
        place = cell.queue() if target == "queue" else cell.topic()
        await cell.receiver.subscribe(place, mode=mode, subscription=cell.subscription(), selector=_with_end(_SELECTED))
        headers = await cell.sender.send(place, *orders())
        found = await cell.receiver.receive(2)
        same("what matches", bodies(found), ["m4", "end"])
        compare(orders()[4], headers[4], found[0])
        if target == "queue":
            await cell.wait_for_backlog(place, 5)
            await cell.receiver.close_consumer()
            await cell.receiver.subscribe(place)
            same("what is left", sorted(bodies(await cell.receiver.receive(5))), ["m0", "m1", "m2", "m3", "m5"])

    return run


async def browsing(cell: Cell) -> None:
    """A browser shows what matches, and takes nothing."""
    await cell.sender.send(cell.queue(), *orders())
    same("what matches", bodies(await cell.receiver.browse(cell.queue(), _SELECTED)), ["m4"])
    await cell.receiver.subscribe(cell.queue())
    same("all", bodies(await cell.receiver.receive(7)), [*_numbered("m", 6), "end"])


def selector_rows() -> list[Row]:
    """Every way to select."""
    emulated = {"jms.enableClientSideEmulation": True}
    at_broker = {"jms.useServerSideFiltering": True}
    return [
        Row(group="Selectors", name="topic: eight selectors", run=selectors(_SELECTORS)),
        Row(
            group="Selectors",
            name="NOT and division in a selector",
            run=selectors(_AMBIGUOUS),
            differs=dict.fromkeys(TO_JAVA, "NOT amount = 1: ['end'] arrived"),
            line="`x <> 1`, NOT, division of integers",
        ),
        Row(group="Selectors", name="durable", run=selecting("topic", "durable")),
        Row(group="Selectors", name="queue", run=selecting("queue"), configuration=emulated),
        Row(group="Selectors", name="shared durable", run=selecting("topic", "shared_durable"), configuration=emulated),
        Row(group="Selectors", name="queue, at the broker", run=selecting("queue"), configuration=at_broker),
        Row(
            group="Selectors",
            name="shared durable, at the broker",
            run=selecting("topic", "shared_durable"),
            configuration=at_broker,
        ),
        Row(group="Selectors", name="browser", run=browsing),
    ]
