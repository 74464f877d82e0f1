"""Names as paths of the REST interface, and positions in its answers."""

from __future__ import annotations

import asyncio
import gc

import anyio
import httpx
import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import InvalidDestinationError, OperationTimeoutError
from jmsaio.transport.base import StartPosition
from jmsaio.transport.pulsar.admin import paths
from jmsaio.transport.pulsar.admin.paths import (
    creating,
    cursor_key,
    namespace_path,
    read_ranges,
    start_position,
    subscribing,
    subscription_path,
    topic_of,
    topic_path,
    transaction_buffer_path,
)

PLAIN = "persistent://public/default/"
NAMES = [
    ("orders", "orders"),
    ("orders-partition-3", "orders-partition-3"),
    ("a b", "a%20b"),
    ("a/b/c", "a%2Fb%2Fc"),
    ("100%", "100%25"),
    ("a%2Fb", "a%252Fb"),
    ("what?now#here&there=1", "what%3Fnow%23here%26there%3D1"),
    ("größe", "gr%C3%B6%C3%9Fe"),
    ("🚀", "%F0%9F%9A%80"),
    ("a+b:c;d", "a%2Bb%3Ac%3Bd"),
    (".", "%2E"),
    ("..", "%2E%2E"),
    ("...", "..."),
    ("../../x", "..%2F..%2Fx"),
    ("a\\b", "a%5Cb"),
    ("~.-_", "~.-_"),
]


@pytest.mark.parametrize(("name", "encoded"), NAMES)
def test_names_become_one_segment(name: str, encoded: str) -> None:
    base = "/admin/v2/persistent/public/default"
    assert topic_path(PLAIN + name) == f"{base}/{encoded}"


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("jms-queue", "jms-queue"), ("a b", "a%2Bb"), ("a+b", "a%252Bb"), ("100%", "100%2525"), ("a/b", "a%252Fb"),
        ("ö", "%25C3%25B6"), ("..", "%2E%2E"), (".", "%2E"), ("*", "%2A"), ("~", "%257E"),
    ],
)  # fmt: skip
def test_subscriptions_are_encoded_twice(name: str, encoded: str) -> None:
    """Once as Java does, once for the path: the broker decodes twice."""
    base = "/admin/v2/persistent/public/default/t"
    assert subscription_path(PLAIN + "t", name) == f"{base}/subscription/{encoded}"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_the_http_library_sends_a_path_as_it_is(name: str) -> None:
    """No name makes the call reach anything but the thing it names."""
    path = subscription_path(PLAIN + "t", name)
    assert httpx.URL("http://h:1" + path).raw_path.decode() == path


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_path_tells_its_topic(name: str) -> None:
    for topic in (PLAIN + name, f"non-persistent://{name.replace('/', '')}x/n/t"):
        for rest in ("", "/partitions", "/subscription/a%2Fb"):
            assert topic_of(topic_path(topic) + rest) == topic
    assert topic_of(namespace_path("persistent", "public/default")) is None
    assert topic_of(transaction_buffer_path(PLAIN + "t")) is None


def test_domains_and_tenants() -> None:
    assert topic_path("non-persistent://t/n/x") == "/admin/v2/non-persistent/t/n/x"
    assert topic_path("persistent://my tenant/n?s/x") == "/admin/v2/persistent/my%20tenant/n%3Fs/x"
    assert namespace_path("persistent", "public/default") == "/admin/v2/persistent/public/default"
    assert namespace_path("non-persistent", "a b/..") == "/admin/v2/non-persistent/a%20b/%2E%2E"


@pytest.mark.parametrize(
    "topic",
    [
        "", "orders", "public/default/orders", "persistent://", "persistent://public", "persistent://public/default",
        "persistent://public/default/", "persistent:///default/x", "persistent://public//x", "http://public/default/x",
        "PERSISTENT://public/default/x", "persistent:/public/default/x", PLAIN + "\ud800",
    ],
)  # fmt: skip
def test_what_is_no_full_name_is_refused(topic: str) -> None:
    with pytest.raises(InvalidDestinationError):
        topic_path(topic)


@pytest.mark.parametrize("name", ["", "\udfff"])
def test_what_is_no_subscription_is_refused(name: str) -> None:
    with pytest.raises(InvalidDestinationError):
        subscription_path(PLAIN + "t", name)


@pytest.mark.parametrize("namespace", ["", "public", "public/", "/default", "public/cluster/default", "public/a/.."])
def test_what_is_no_namespace_is_refused(namespace: str) -> None:
    with pytest.raises(InvalidDestinationError, match="tenant/namespace"):
        namespace_path("persistent", namespace)


@pytest.mark.parametrize(
    ("name", "key"),
    [("jms-queue", "jms-queue"), ("a b", "a+b"), ("~", "%7E"), ("a*b", "a*b"), ("ö/:", "%C3%B6%2F%3A"), ("+", "%2B")],
)
def test_cursor_keys_are_encoded_as_java_does(name: str, key: str) -> None:
    assert cursor_key(name) == key


def test_start_positions_are_the_message_ids_that_pulsar_reads_so() -> None:
    earliest, latest = start_position(StartPosition.EARLIEST), start_position(StartPosition.LATEST)
    assert (earliest["ledgerId"], earliest["entryId"]) == (-1, -1)
    assert (latest["ledgerId"], latest["entryId"]) == (2**63 - 1, 2**63 - 1)


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("", ()),
        ("[]", ()),
        ("[(3:1..3:4]]", (((3, 2), (3, 4)),)),
        ("[(3:1..3:4],(3:6..3:7]]", (((3, 2), (3, 4)), ((3, 7), (3, 7)))),
        ("[(3:1‥3:4], (3:6‥4:0]]", (((3, 2), (3, 4)), ((3, 7), (4, 0)))),
        ("[(3:-1..3:0]]", (((3, 0), (3, 0)),)),
        ("[(-1:-1..3:0]]", (((-1, 0), (3, 0)),)),
        ("[[3:1..3:4]]", (((3, 1), (3, 4)),)),
        ("[(3:1..3:4)]", (((3, 2), (3, 3)),)),
    ],
)
def test_ranges_of_acknowledgements_are_read(
    text: str, ranges: tuple[tuple[tuple[int, int], tuple[int, int]], ...]
) -> None:
    assert read_ranges(text) == ranges


def test_transactions_are_asked_for_by_the_name_of_a_persistent_topic() -> None:
    front = "/admin/v3/transactions/transactionBufferStats"
    assert transaction_buffer_path(f"{PLAIN}a b") == f"{front}/public/default/a%20b"
    with pytest.raises(InvalidDestinationError, match="stores nothing"):
        transaction_buffer_path(f"non-{PLAIN}a")


TOPIC = "persistent://public/default/t"
#: Seconds after which a turn never comes.
LONG = 20.0


async def settle() -> None:
    """Let everything that can go on go on."""
    for _ in range(5):
        await anyio.lowlevel.checkpoint()


class Visitor:
    """Somebody who takes a turn and keeps it until told to leave."""

    def __init__(self, turn: object, topic: str = TOPIC, name: str = "s", timeout: float = LONG) -> None:
        self.inside = False
        self.leave = asyncio.Event()
        self.task = asyncio.ensure_future(self._run(turn(topic, name, timeout)))  # type: ignore[operator] # one of two

    async def _run(self, turn: object) -> None:
        async with turn:  # type: ignore[attr-defined] # a context manager
            self.inside = True
            try:
                await self.leave.wait()
            finally:
                self.inside = False

    async def end(self) -> None:
        self.leave.set()
        await self.task


async def test_subscribers_do_not_wait_for_each_other() -> None:
    """Those who subscribe are inside at the same time; who creates waits until all have left."""
    first, second = Visitor(subscribing), Visitor(subscribing, f"{TOPIC}-partition-3")
    await settle()
    maker = Visitor(creating)
    await settle()
    assert first.inside and second.inside and not maker.inside
    await first.end()
    await settle()
    assert not maker.inside
    await second.end()
    await settle()
    assert maker.inside
    await maker.end()


async def test_who_creates_goes_first() -> None:
    """Who comes to subscribe after somebody who waits to create comes in after it, so that nobody waits for ever."""
    first = Visitor(subscribing)
    await settle()
    makers = [Visitor(creating), Visitor(creating)]
    late = Visitor(subscribing)
    await settle()
    await first.end()
    await settle()
    assert [one.inside for one in makers] == [True, False]
    await makers[0].end()
    await settle()
    assert makers[1].inside and not late.inside
    await makers[1].end()
    await settle()
    assert late.inside
    await late.end()


async def test_other_subscriptions_are_other_places() -> None:
    """Another name, or another topic, never waits."""
    visitors = [Visitor(creating), Visitor(creating, name="other"), Visitor(creating, f"{TOPIC}2")]
    await settle()
    assert all(one.inside for one in visitors)
    for one in visitors:
        await one.end()
    assert not paths._TURNS


async def test_a_turn_that_does_not_come() -> None:
    """The wait is bounded, and says what is waited for."""
    holder = Visitor(creating)
    await settle()
    for turn, words in ((creating, "create subscription s"), (subscribing, "subscribe s")):
        with pytest.raises(OperationTimeoutError, match=words):
            async with turn(TOPIC, "s", 0.01):
                pass
    await holder.end()
    await Visitor(subscribing).end()


async def test_a_cancelled_wait_leaves_no_trace() -> None:
    """Nobody waits for one who has given up."""
    holder = Visitor(subscribing)
    await settle()
    maker = Visitor(creating)
    await settle()
    maker.task.cancel()
    await settle()
    other = Visitor(subscribing)
    await settle()
    assert other.inside
    await other.end()
    await holder.end()
    del maker
    gc.collect()  # the traceback of the one that was cancelled
    assert not paths._TURNS
