"""``python -m benchmarks``: its rows, its command line and its files."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import jmsaio
from benchmarks.__main__ import main, web_url_of
from benchmarks.catalog import all_scenarios, beside_uvloop
from benchmarks.child import find_target
from benchmarks.floor import wire_properties
from benchmarks.goals import GOALS, REFERENCES
from benchmarks.properties import raw_properties
from benchmarks.report import read_json
from benchmarks.scenario import Block
from benchmarks.scenarios import typed_properties
from benchmarks.spark.catalog import spark_scenarios
from jmsaio.codec import encode

ROOT = Path(__file__).parents[2]
URL = "pulsar://broker:6650"


def benchmarks(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=110,
    )  # fmt: skip


def test_every_row_is_there_with_a_target_that_exists() -> None:
    rows = all_scenarios(URL, "http://broker:8080", "classes")
    assert len({row.name for row in rows}) == len(rows)
    for row in rows:
        assert callable(find_target(row.target))
        if row.prepare is not None:
            assert callable(find_target(row.prepare))
    assert set(REFERENCES) == set(Block)
    by_name = {row.name: row for row in [*rows, *spark_scenarios(URL, URL)]}
    assert {name for references in REFERENCES.values() for name in references} <= by_name.keys()
    for goal in GOALS:
        row = by_name[goal.scenario]
        assert goal.reference is None or goal.reference in (*REFERENCES[row.group], *row.references)


def test_without_broker_or_class_path_rows_are_left_out() -> None:
    assert {row.url for row in all_scenarios(None, "", None)} == {"memory:", "costless://packed", "costless://maps"}
    assert not [row for row in all_scenarios(URL, "", None) if row.name.endswith(".java")]


def test_only_jmsaio_rows_name_the_web_address() -> None:
    rows = all_scenarios(URL, "http://broker:1", "classes")
    told = {row.name for row in rows if "?webServiceUrl=http://broker:1" in row.url}
    ours = ("send.{}", "send.{}-workers", "receive.{}", "receive.{}-listener", "latency.{}")
    on_wire = {row.name for row in rows if row.url.endswith("&transport=wire")}
    assert on_wire == {name.format("wire") for name in ours}
    in_transactions = {"transaction.wire", "transaction.wire-50", "transaction.wire-messages"}
    others = {"filter.client", "filter.broker"} | in_transactions | {name.format("jmsaio") for name in ours}
    assert told == on_wire | others


def test_raw_rows_carry_three_string_properties() -> None:
    assert raw_properties(7) == {"region": "EU", "amount": "7", "kind": "order"}


def test_rows_of_spark_need_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--spark", "--smoke"]) == 2
    assert "--spark needs a broker" in capsys.readouterr().err


async def test_the_floor_carries_what_a_send_of_jmsaio_puts_on_the_wire() -> None:
    async with jmsaio.connect("memory://floor") as connection, connection.create_session() as session:
        queue = session.create_queue("floor")
        producer = await session.create_producer(queue)
        message = jmsaio.TextMessage("x", properties=typed_properties(7))
        receipt = await producer.send(message)
    record = encode(message, producer._stamp(producer._stamper.settings, (None,) * 4))
    floor = wire_properties(7, receipt.timestamp)
    assert floor.keys() == record.properties.keys()
    varying = {"JMSConnectionID", "JMSDeliveryTime", "JMSMessageId"}
    assert {name: text for name, text in floor.items() if name not in varying} == {
        name: text for name, text in record.properties.items() if name not in varying
    }


def test_the_web_address_is_that_of_the_first_host() -> None:
    assert web_url_of("pulsar://one:6650,two:6650") == "http://one:8080"


@pytest.mark.parametrize(("arguments", "said"), [
    (("--only", "nothing-like-this"), "benchmarks: no row matches"), (("--rounds", "0"), "rounds must be at least 1"),
])  # fmt: skip
def test_wrong_use_is_one_sentence(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_tiny_smoke_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, plot = tmp_path / "report.json", tmp_path / "plot.svg"
    rows = "embedded.bare|embedded.through|embedded.traced"
    status = main(["--smoke", "--only", rows, "--json-file", str(report), "--plot", str(plot)])
    said = capsys.readouterr()
    assert status == 0, said.err
    assert "Embedded broker" in said.out
    assert [row.scenario.name for row in read_json(report).rows()] == rows.split("|")
    assert plot.exists()


def test_a_row_with_an_event_loop_is_measured_on_uvloop_beside_asyncio() -> None:
    rows = {row.name: row for row in beside_uvloop(all_scenarios(URL, "http://broker:8080", "classes"))}
    beside = {name.removesuffix("-uvloop") for name, row in rows.items() if row.loop == "uvloop"}
    assert {"layer.send", "layer.listener", "embedded.through", "send.jmsaio", "send.floor"} <= beside
    assert not beside & {"send.raw", "send.java", "embedded.bare", "selector.three-terms"}
    assert rows["layer.send"].loop is None
    assert rows["layer.send-uvloop"].references == ("layer.send", "layer.bare-send", "layer.bare-send-uvloop")


def test_rows_beside_asyncio_run_on_uvloop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    assert main(["--smoke", "--uvloop", "--only", "^layer.bare-send($|-uvloop)", "--json-file", str(report)]) == 0
    assert "bare loop: bytes and futures, uvloop" in capsys.readouterr().out
    found = {row.scenario.name: [ratio.reference for ratio in row.ratios] for row in read_json(report).rows()}
    assert found == {"layer.bare-send": [], "layer.bare-send-uvloop": ["layer.bare-send"]}


@pytest.mark.parametrize(("missing", "more", "said"), [
    (True, ("--uvloop",), "pip install 'jmsaio[uvloop]'"), (True, ("--plot", "x.png"), "pip install 'jmsaio[plot]'"),
    (False, ("--uvloop", "--loop", "uvloop"), "leave --loop uvloop out"),
])  # fmt: skip
def test_what_is_missing_is_said_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], missing: bool, more: tuple[str, ...], said: str
) -> None:
    if missing:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["--smoke", *more]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.broker
def test_a_smoke_run_with_a_broker(pulsar_broker: Any) -> None:
    """The step ``first-uses`` of CI has all rows."""
    done = benchmarks(
        pulsar_broker.service_url, "--web-url", pulsar_broker.web_service_url, "--smoke", "--no-java",
        "--only", r"^(send|receive)\.jmsaio$|^transaction\.wire$",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for row in ("jmsaio send_async", "jmsaio receive, AUTO"):
        assert row in done.stdout
