"""The rows of jmsaio and of its peers, and all rows of one run in table order."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

import attrs

from benchmarks.child import find_target
from benchmarks.java_peer import CLASS_PATH, WEB_URL
from benchmarks.layer.catalog import layer_scenarios
from benchmarks.scenario import Block, Scenario, with_query
from benchmarks.transactions import NATIVE, SHAPE

#: URL of the embedded broker.
EMBEDDED = "memory:"

_OWN = "benchmarks.scenarios"

#: The cost of tracing; without it, ``embedded.through`` measures the same.
TRACED = Scenario(
    "embedded.traced", "send to acknowledge, with OpenTelemetry", Block.EMBEDDED, "benchmarks.traced:traced", EMBEDDED,
    references=("embedded.through",),
)  # fmt: skip


def embedded_scenarios() -> list[Scenario]:
    """Return the rows that need no broker: embedded broker, selector and idle consumers."""
    return [
        Scenario("embedded.bare", "bare loop: build, encode, decode, read", Block.EMBEDDED,
                 f"{_OWN}:bare_loop", EMBEDDED),
        Scenario("embedded.through", "send to acknowledge", Block.EMBEDDED, f"{_OWN}:through", EMBEDDED),
        Scenario("embedded.send", "send_async only", Block.EMBEDDED, f"{_OWN}:futures", EMBEDDED),
        Scenario("embedded.receive", "receive and acknowledge only", Block.EMBEDDED,
                 f"{_OWN}:fill_and_receive", EMBEDDED),
        Scenario("latency.embedded", "jmsaio, embedded broker", Block.LATENCY, f"{_OWN}:latency", EMBEDDED),
        Scenario("selector.three-terms", "three terms, properties not decoded", Block.SELECTOR,
                 f"{_OWN}:three_terms", EMBEDDED),
        Scenario("idle.consumers", "idle consumers, each on its own queue", Block.IDLE,
                 f"{_OWN}:idle_consumers", EMBEDDED),
    ]  # fmt: skip


def broker_scenarios(url: str) -> list[Scenario]:
    """Return the rows of jmsaio on the broker at ``url``, on each transport."""
    wire = with_query(url, "transport=wire")
    return [*_transport_scenarios("jmsaio", "jmsaio", url), *_transport_scenarios("wire", "wire", wire)]


def _transport_scenarios(name: str, title: str, url: str) -> list[Scenario]:
    return [
        Scenario(f"send.{name}", f"{title} send_async", Block.SEND, f"{_OWN}:futures", url),
        Scenario(f"send.{name}-workers", f"{title} workers await send", Block.SEND, f"{_OWN}:workers", url),
        Scenario(f"receive.{name}", f"{title} receive, AUTO", Block.RECEIVE, f"{_OWN}:receive", url,
                 prepare=f"{_OWN}:fill"),
        Scenario(f"receive.{name}-listener", f"{title} listener, AUTO", Block.RECEIVE, f"{_OWN}:listen", url,
                 prepare=f"{_OWN}:fill"),
        Scenario(f"latency.{name}", title, Block.LATENCY, f"{_OWN}:latency", url),
    ]  # fmt: skip


def pulsar_scenarios(url: str) -> list[Scenario]:
    """Raw pulsar-client, pulsar.asyncio, and what our wire format costs over pulsar-client at the least."""
    return [
        Scenario("send.raw", "raw send_async, Python callback", Block.SEND, "benchmarks.raw:send", url),
        Scenario("send.pulsar-asyncio", "pulsar.asyncio, workers await send", Block.SEND,
                 "benchmarks.pulsar_asyncio:send", url),
        Scenario("send.floor", "floor: groups and futures, no JMS", Block.SEND, "benchmarks.floor:send", url),
        Scenario("receive.raw", "raw message_listener + acknowledge", Block.RECEIVE, "benchmarks.raw:receive", url,
                 prepare="benchmarks.raw:fill"),
        Scenario("receive.pulsar-asyncio", "pulsar.asyncio receive + acknowledge", Block.RECEIVE,
                 "benchmarks.pulsar_asyncio:receive", url, prepare="benchmarks.raw:fill"),
        Scenario("receive.floor", "floor: inline drain, no JMS", Block.RECEIVE, "benchmarks.floor:receive", url,
                 prepare="benchmarks.floor:fill"),
        Scenario("latency.raw", "raw send_async, message_listener", Block.LATENCY, "benchmarks.raw:latency", url),
        Scenario("latency.pulsar-asyncio", "pulsar.asyncio", Block.LATENCY, "benchmarks.pulsar_asyncio:latency", url),
    ]  # fmt: skip


def filter_scenarios(url: str) -> list[Scenario]:
    """Return a selector in the client and at the broker at ``url``, which has the filter plugin."""
    here = "benchmarks.filtering"
    return [
        Scenario("filter.client", "selector in the client", Block.FILTER, f"{here}:in_client", url,
                 prepare=f"{here}:fill", timeout=900.0),
        Scenario("filter.broker", "selector at the broker", Block.FILTER, f"{here}:at_broker", url,
                 prepare=f"{here}:fill", timeout=900.0),
    ]  # fmt: skip


def java_scenarios(url: str, web_url: str, class_path: str) -> list[Scenario]:
    """Return the Java peer on the broker at ``url``."""
    extra = {CLASS_PATH: class_path, WEB_URL: web_url}
    return [
        Scenario("send.java", "Starlight, CompletionListener", Block.SEND, "benchmarks.java_peer:send", url,
                 extra=extra),
        Scenario("receive.java", "Starlight, AUTO_ACKNOWLEDGE", Block.RECEIVE, "benchmarks.java_peer:receive", url,
                 extra=extra),
        Scenario("latency.java", "Starlight, receive", Block.LATENCY, "benchmarks.java_peer:latency", url,
                 extra=extra),
        *transaction_scenarios("java", "Starlight", url, "benchmarks.java_peer:transactions", extra),
    ]  # fmt: skip


def transaction_scenarios(
    name: str, title: str, url: str, target: str = "benchmarks.transactions:transactions",
    extra: Mapping[str, str] = {},
) -> list[Scenario]:  # fmt: skip
    """Return the rows of transactions of jmsaio at ``url``, or of the Java peer, with which they are compared."""
    rows = {"": "one after another", "-50": "in 50 sessions", "-messages": "with 100 messages each, messages"}
    return [
        Scenario(
            f"transaction.{name}{row}", f"{title}, {what}", Block.TRANSACTION, target, url,
            timeout=600.0, extra={SHAPE: row, **extra}, references=() if extra else (f"transaction.java{row}",),
        )
        for row, what in rows.items()
    ]  # fmt: skip


def all_scenarios(url: str | None, web_url: str, class_path: str | None) -> list[Scenario]:
    """Every row that can be measured: without ``url`` the embedded ones, without ``class_path`` no Java peer."""
    without_broker = [*layer_scenarios(), *embedded_scenarios(), TRACED]
    if url is None:
        return without_broker
    java = java_scenarios(url, web_url, class_path) if class_path is not None else []
    return [
        *pulsar_scenarios(url),
        *java,
        *broker_scenarios(jmsaio_url(url, web_url)),
        *transaction_scenarios("wire", "wire", with_query(jmsaio_url(url, web_url), NATIVE)),
        *filter_scenarios(jmsaio_url(url, web_url)),
        *without_broker,
    ]


def beside_uvloop(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Each row, and behind it the same on uvloop if it runs on an event loop, compared with it."""
    rows = []
    for row in scenarios:
        rows.append(row)
        if inspect.iscoroutinefunction(find_target(row.target)):
            references = (row.name, *row.references, *(f"{name}-uvloop" for name in row.references))
            rows.append(attrs.evolve(row, name=f"{row.name}-uvloop", title=f"{row.title}, uvloop",
                                     references=references, loop="uvloop"))  # fmt: skip
    return rows


def jmsaio_url(url: str, web_url: str) -> str:
    """``url`` for jmsaio, which asks the broker's web address for the first use of a queue; raw peers don't know it."""
    return with_query(url, f"webServiceUrl={web_url}")
