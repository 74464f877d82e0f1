"""The peers' side, ``benchmarks/`` at the root of a checkout."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jmsaio
from jmsaio.bench.catalog import GOALS, REFERENCES
from jmsaio.bench.child import find_target
from jmsaio.bench.report import read_json
from jmsaio.bench.scenarios import typed_properties
from jmsaio.codec import encode

ROOT = Path(__file__).parents[2]
URL = "pulsar://broker:6650"


@pytest.fixture
def root_on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """``benchmarks`` is no installed package; it is found from the root, as ``python -m benchmarks`` finds it."""
    monkeypatch.syspath_prepend(str(ROOT))
    yield


def benchmarks(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip


@pytest.mark.usefixtures("root_on_path")
def test_every_row_is_there_with_a_target_that_exists() -> None:
    from benchmarks.catalog import all_scenarios

    rows = all_scenarios(URL, "http://broker:8080", "classes")
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert callable(find_target(row.target))
        if row.prepare is not None:
            assert callable(find_target(row.prepare))
    names = {row.name for row in rows}
    assert {name for references in REFERENCES.values() for name in references} <= names
    assert {goal.scenario for goal in GOALS if not goal.scenario.startswith("spark.")} <= names


@pytest.mark.usefixtures("root_on_path")
def test_without_broker_or_class_path_rows_are_left_out() -> None:
    from benchmarks.catalog import all_scenarios

    assert {row.url for row in all_scenarios(None, "", None)} == {"memory:", "costless://packed", "costless://maps"}
    assert not [row for row in all_scenarios(URL, "", None) if row.name.endswith(".java")]


@pytest.mark.usefixtures("root_on_path")
def test_only_jmsaio_rows_name_the_web_address() -> None:
    from benchmarks.catalog import all_scenarios

    rows = all_scenarios(URL, "http://broker:1", "classes")
    told = {row.name for row in rows if "?webServiceUrl=http://broker:1" in row.url}
    ours = ("send.{}", "send.{}-workers", "receive.{}", "receive.{}-listener", "latency.{}")
    on_wire = {row.name for row in rows if row.url.endswith("&transport=wire")}
    assert on_wire == {name.format("wire") for name in ours}
    in_transactions = {"transaction.wire", "transaction.wire-50", "transaction.wire-messages"}
    others = {"filter.client", "filter.broker"} | in_transactions | {name.format("jmsaio") for name in ours}
    assert told == on_wire | others


@pytest.mark.usefixtures("root_on_path")
def test_raw_rows_carry_three_string_properties() -> None:
    from benchmarks.properties import raw_properties

    assert raw_properties(7) == {"region": "EU", "amount": "7", "kind": "order"}


@pytest.mark.usefixtures("root_on_path")
def test_rows_of_spark_need_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.__main__ import main

    assert main(["--spark", "--smoke"]) == 2
    assert "--spark needs a broker" in capsys.readouterr().err


@pytest.mark.usefixtures("root_on_path")
async def test_the_floor_carries_what_a_send_of_jmsaio_puts_on_the_wire() -> None:
    from benchmarks.floor import wire_properties

    async with jmsaio.connect("memory://floor") as connection, connection.create_session() as session:
        queue = session.create_queue("floor")
        producer = await session.create_producer(queue)
        message = jmsaio.TextMessage("x", properties=typed_properties(7))
        receipt = await producer.send(message)
    record = encode(message, producer._stamp(None, None, None, None, producer._stamper.settings))
    floor = wire_properties(7, receipt.timestamp)
    assert floor.keys() == record.properties.keys()
    varying = {"JMSConnectionID", "JMSDeliveryTime", "JMSMessageId"}
    assert {name: text for name, text in floor.items() if name not in varying} == {
        name: text for name, text in record.properties.items() if name not in varying
    }


@pytest.mark.usefixtures("root_on_path")
def test_the_web_address_is_that_of_the_first_host() -> None:
    from benchmarks.__main__ import web_url_of

    assert web_url_of("pulsar://one:6650,two:6650") == "http://one:8080"


def test_wrong_use_is_one_sentence() -> None:
    done = benchmarks("--only", "nothing-like-this")
    assert done.returncode == 2
    assert done.stderr.startswith("benchmarks: no row matches")
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("root_on_path")
def test_a_tiny_smoke_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.__main__ import main

    report, plot = tmp_path / "report.json", tmp_path / "plot.svg"
    rows = "embedded.bare|embedded.through|embedded.traced"
    status = main(["--smoke", "--only", rows, "--json-file", str(report), "--plot", str(plot)])
    said = capsys.readouterr()
    assert status == 0, said.err
    assert "Embedded broker" in said.out
    assert [row.scenario.name for row in read_json(report).rows()] == rows.split("|")
    assert plot.exists()


@pytest.mark.usefixtures("root_on_path")
def test_a_row_with_an_event_loop_is_measured_on_uvloop_beside_asyncio() -> None:
    from benchmarks.catalog import all_scenarios, beside_uvloop

    rows = {row.name: row for row in beside_uvloop(all_scenarios(URL, "http://broker:8080", "classes"))}
    beside = {name.removesuffix("-uvloop") for name, row in rows.items() if row.loop == "uvloop"}
    assert {"layer.send", "layer.listener", "embedded.through", "send.jmsaio", "send.floor"} <= beside
    assert not beside & {"send.raw", "send.java", "embedded.bare", "selector.three-terms"}
    assert rows["layer.send"].loop is None
    assert rows["layer.send-uvloop"].references == ("layer.send", "layer.bare-send", "layer.bare-send-uvloop")


@pytest.mark.usefixtures("root_on_path")
def test_rows_beside_asyncio_run_on_uvloop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.__main__ import main

    report = tmp_path / "report.json"
    assert main(["--smoke", "--uvloop", "--only", "^layer.bare-send($|-uvloop)", "--json-file", str(report)]) == 0
    assert "bare loop: bytes and futures, uvloop" in capsys.readouterr().out
    found = {row.scenario.name: [ratio.reference for ratio in row.ratios] for row in read_json(report).rows()}
    assert found == {"layer.bare-send": [], "layer.bare-send-uvloop": ["layer.bare-send"]}


@pytest.mark.parametrize(("missing", "more", "said"), [
    (True, (), "pip install 'jmsaio[uvloop]'"), (False, ("--loop", "uvloop"), "leave --loop uvloop out"),
])  # fmt: skip
@pytest.mark.usefixtures("root_on_path")
def test_what_uvloop_needs_is_said_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], missing: bool, more: tuple[str, ...], said: str
) -> None:
    from benchmarks.__main__ import main

    if missing:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["--smoke", "--uvloop", *more]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.broker
def test_a_smoke_run_with_a_broker(pulsar_broker: Any) -> None:
    done = benchmarks(
        pulsar_broker.service_url, "--web-url", pulsar_broker.web_service_url, "--smoke", "--no-java",
        "--only", "^(send|receive|transaction.wire$)",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for row in ("jmsaio send_async", "jmsaio receive, AUTO"):
        assert row in done.stdout
