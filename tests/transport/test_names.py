"""The names of processes and consumers in a broker's statistics, and that a configured name is kept."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from jmsaio.config import ConsumerConfig
from jmsaio.transport.base import Subscription, SubscriptionType
from jmsaio.transport.names import named, process_name, unique_name

PLAIN = Subscription(("persistent://public/default/t",), "s", SubscriptionType.SHARED, ConsumerConfig())
FAILOVER = attrs.evolve(PLAIN, type=SubscriptionType.FAILOVER)


@pytest.mark.parametrize(
    ("program", "app"),
    [
        ("/srv/orders/worker.py", "worker"),
        ("/usr/bin/orders", "orders"),
        ("/srv/orders/__main__.py", "orders"),  # python -m orders
        ("-c", "c"),
        ("", "python"),  # an interactive interpreter
        ("/srv/große @app:1.py", "gro_e_app_1"),
        ("/srv/" + "x" * 100, "x" * 40),
    ],
)
def test_a_process_is_named_by_its_program_its_host_and_its_id(
    program: str, app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [program, "--port", "1"])
    monkeypatch.setattr(socket, "gethostname", lambda: "web-1.example.org")
    assert process_name() == f"{app}@web-1.example.org:{os.getpid()}"


def test_a_process_without_arguments_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [])
    assert process_name().startswith("python@")


def test_the_name_is_that_of_the_program_that_runs(tmp_path: Path) -> None:
    program = tmp_path / "billing.py"
    program.write_text("from jmsaio.transport.names import process_name; print(process_name())")
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) as process:
        assert process.communicate(timeout=60)[0].startswith("billing@")


def test_names_of_a_process_differ_and_sort_by_age() -> None:
    names = [unique_name() for _ in range(20)]
    assert len(set(names)) == 20
    assert names == sorted(names)
    assert {name.rpartition("-")[0] for name in names} == {process_name()}


def test_a_configured_name_is_kept() -> None:
    given = attrs.evolve(PLAIN, config=ConsumerConfig(consumer_name="mine"))
    assert named(given) is given


def test_only_the_name_is_added() -> None:
    found = named(PLAIN)
    assert found.config.consumer_name is not None
    assert found.config.consumer_name.startswith(f"{process_name()}-")
    assert attrs.evolve(found, config=PLAIN.config) == PLAIN


def test_each_failover_subscription_has_another_order_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first name receives a topic's first partition: with many topics, every process is first somewhere."""

    def first(topic: str) -> str:
        names = []
        for host in ("web-1", "web-2", "web-3"):
            monkeypatch.setattr(socket, "gethostname", lambda host=host: host)
            names.append(named(attrs.evolve(FAILOVER, topics=(topic,))).config.consumer_name or "")
        return min(names).partition("@")[2].partition(":")[0]

    assert {first(f"persistent://public/default/t-{number}") for number in range(30)} == {"web-1", "web-2", "web-3"}


def test_consumers_of_a_process_on_one_failover_subscription_sort_by_age() -> None:
    names = [named(FAILOVER).config.consumer_name or "" for _ in range(12)]
    assert names == sorted(set(names))
    assert all(process_name() in name for name in names)
