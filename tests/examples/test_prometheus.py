"""The dashboard shows what is measured: each of its expressions selects samples of a real scrape."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import anyio.to_thread
import promql_parser
import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import start_http_server
from prometheus_client.parser import text_string_to_metric_families
from promql_parser import AggregateExpr, Expr, MatchOp, VectorSelector

import jmsaio
from jmsaio.otel import OpenTelemetry
from jmsaio.testing import embedded_broker
from tests.examples import prometheus
from tests.support.broker import TestBroker
from tests.support.documents import ROOT

DASHBOARD = json.loads((ROOT / "jmsaio" / "guide" / "grafana.json").read_text(encoding="utf-8"))
PANELS = DASHBOARD["panels"]


def targets(source: str) -> list[tuple[str, str]]:
    """Expression and legend of each target with metrics of ``source``: messaging, or pulsar."""
    found = [(target["expr"], target["legendFormat"]) for panel in PANELS for target in panel["targets"]]
    return [(expression, legend) for expression, legend in found if f"{source}_" in expression]


class Scrape:
    """The samples that a port serves to Prometheus."""

    def __init__(self, url: str) -> None:
        with urllib.request.urlopen(url, timeout=30) as answer:
            families = text_string_to_metric_families(answer.read().decode())
            self.samples = [(sample.name, sample.labels) for family in families for sample in family.samples]

    def select(self, selector: VectorSelector) -> list[Mapping[str, str]]:
        """The labels of the samples that a selector selects."""
        return [labels for name, labels in self.samples if name == selector.name and _matches(selector, labels)]

    def check(self, expression: str, legend: str, destination: str) -> None:
        """Each selector must select samples, and each label of the result must be one of theirs."""
        text = expression.replace("$destination", destination).replace("$__rate_interval", "5m")
        nodes: list[Expr] = []
        promql_parser.walk(promql_parser.parse(text), nodes.append)
        selectors = [node for node in nodes if isinstance(node, VectorSelector)]
        assert selectors
        labels: set[str] = set()
        for selector in selectors:
            selected = self.select(selector)
            assert selected, f"nothing matches {selector.prettify()}"
            labels = labels.union(*selected)
        modifiers = [node.modifier for node in nodes if isinstance(node, AggregateExpr) and node.modifier]
        kept = {label for modifier in modifiers for label in modifier.labels}
        assert kept and kept <= labels, f"{text} keeps labels that no sample has"
        assert set(re.findall(r"{{(\w+)}}", legend)) <= kept


def _matches(selector: VectorSelector, labels: Mapping[str, str]) -> bool:
    for each in selector.matchers.matchers:
        value = labels.get(each.name, "")
        exact = each.op in (MatchOp.Equal, MatchOp.NotEqual)
        equal = value == each.value if exact else re.fullmatch(each.value, value) is not None
        if equal is (each.op in (MatchOp.NotEqual, MatchOp.NotRe)):
            return False
    return True


@contextmanager
def measured() -> Iterator[tuple[OpenTelemetry, str]]:
    """A tracing, and the address where its metrics are scraped."""
    server, thread = start_http_server(0)
    provider = MeterProvider([PrometheusMetricReader()])
    try:
        yield OpenTelemetry(meter_provider=provider), f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        provider.shutdown()
        server.shutdown()
        thread.join()
        server.server_close()


@asynccontextmanager
async def worked(url: str, tracing: OpenTelemetry, orders: Sequence[str]) -> AsyncIterator[None]:
    """Run the example until it has sent the bill for the last order."""
    worker = asyncio.create_task(prometheus.work(url, tracing))
    try:
        async with jmsaio.connect(url, tracing=tracing) as connection, connection.create_session() as session:
            async with session.create_consumer(session.create_queue("bills")) as bills:
                producer = await session.create_producer(session.create_queue("orders"))
                for order in orders:
                    await producer.send(order)
                with pytest.raises(jmsaio.MessageTooLargeError):
                    await producer.send(bytes(6_000_000))
                async for bill in bills:
                    if bill.get_body(str) == f"{orders[-1]} EUR":
                        break
            yield
    finally:
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker


@pytest.mark.parametrize("destination", ["orders", ".*"])
async def test_each_expression_finds_what_the_example_measures(destination: str) -> None:
    with embedded_broker() as broker, measured() as (tracing, address):
        async with worked(broker.url, tracing, ["1", "two", "3"]):
            scrape = await anyio.to_thread.run_sync(Scrape, address)
    for expression, legend in targets("messaging"):
        scrape.check(expression, legend, destination)
    [variable] = [each for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    [(metric, label)] = re.findall(r"^label_values\((\w+), (\w+)\)$", variable["query"]["query"])
    assert {labels[label] for name, labels in scrape.samples if name == metric} == {"orders", "bills"}


@pytest.mark.broker
async def test_each_expression_about_the_broker_finds_its_metrics(pulsar_broker: TestBroker) -> None:
    name = f"scraped-{uuid.uuid4()}"
    async with jmsaio.connect(pulsar_broker.url) as connection, connection.create_session() as session:
        await session.create_consumer(session.create_queue(name))
        await (await session.create_producer(session.create_queue(name))).send("one")
        scrape = await anyio.to_thread.run_sync(Scrape, f"{pulsar_broker.web_service_url}/metrics/")
    assert targets("pulsar")
    for destination in (name, f"persistent://public/default/{name}", ".*"):
        for expression, legend in targets("pulsar"):
            scrape.check(expression, legend, destination)


@pytest.mark.parametrize(
    ("expression", "legend"),
    [
        ("sum by (a) (rate(missing_total[5m]))", ""),
        ('sum by (a) (rate(x_total{a="other"}[5m]))', ""),
        ("sum by (b) (rate(x_total[5m]))", ""),
        ("sum by (a) (rate(x_total[5m]))", "{{b}}"),
    ],
)
def test_an_expression_that_finds_nothing_is_noticed(expression: str, legend: str) -> None:
    scrape = Scrape.__new__(Scrape)
    scrape.samples = [("x_total", {"a": "one"})]
    scrape.check("sum by (a) (rate(x_total[5m]))", "{{a}}", ".*")
    with pytest.raises(AssertionError):
        scrape.check(expression, legend, ".*")


def test_panels_have_their_own_numbers_and_places() -> None:
    def cells(panel: Mapping[str, Any]) -> set[tuple[int, int]]:
        place = panel["gridPos"]
        return {(place["x"] + right, place["y"] + down) for right in range(place["w"]) for down in range(place["h"])}

    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    every = [cell for panel in PANELS for cell in cells(panel)]
    assert len(every) == len(set(every)) and max(column for column, _ in every) < 24


def test_panels_take_their_data_from_the_chosen_source() -> None:
    [source] = [each["name"] for each in DASHBOARD["templating"]["list"] if each["type"] == "datasource"]
    used = [target["datasource"] for panel in PANELS for target in (panel, *panel["targets"])]
    assert all(each == {"type": "prometheus", "uid": f"${{{source}}}"} for each in used)
    assert all(panel["description"] and panel["fieldConfig"]["defaults"]["unit"] for panel in PANELS)
