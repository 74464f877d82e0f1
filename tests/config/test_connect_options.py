"""The keyword types of ``connect``: equal to the declared options, and of use to a type checker."""

import importlib.util
import pathlib
import subprocess
import sys
import typing

import pytest

from jmsaio.config import Configuration, ConnectOptions, ConsumerConfig, FactoryOptions, ProducerConfig, document, load
from jmsaio.config.keywords import KEYWORDS
from jmsaio.config.options import Option, Status

WRONG = {
    "connect(sned_timeout=1)": "sned_timeout",
    'connect(send_timeout="soon")': "send_timeout",
    'connect(auto_start="yes")': "auto_start",
    'connect(acknowledge_scope="all")': "acknowledge_scope",
    "connect(dead_letter=3)": "dead_letter",
    "ConnectionFactory(clientid=None)": "clientid",
    "ConnectionFactory(client_id=5)": "client_id",
    'load("memory:", close_timeout=None)': "close_timeout",
}
RIGHT = """
connect("memory:", client_id="c", user="u", send_timeout=10, close_timeout=timedelta(seconds=1), ack_timeout=None)
connect(producer={"batching_enabled": False}, dead_letter=DeadLetterPolicy(max_redeliver_count=3))
ConnectionFactory({"jms.clientId": "c"}, client_id=None, acknowledge_scope="group", consumer=ConsumerConfig())
load("memory:", environ={}, client_id="c", io_threads=2)
options: ConnectOptions = {"send_timeout": 1.5}
connect("memory:", **options)
"""
HEAD = """
from datetime import timedelta

from jmsaio import ConnectionFactory, connect
from jmsaio.config import ConnectOptions, ConsumerConfig, DeadLetterPolicy, load
"""


def test_the_keyword_types_are_those_of_the_declared_options() -> None:
    assert document.TYPES.read_text(encoding="utf-8") == document.connect_options(), document.__doc__


def test_each_keyword_that_is_built_has_a_type_and_no_other_name_has() -> None:
    built = {
        name
        for name, each in KEYWORDS.items()
        if not isinstance(each.declared, Option) or each.declared.status is Status.BUILT
    }
    assert set(FactoryOptions.__annotations__) == built | {"client"}
    assert set(FactoryOptions.__annotations__) - set(ConnectOptions.__annotations__) == {"client_id"}
    assert not FactoryOptions.__required_keys__


def test_the_types_are_the_ones_of_the_fields() -> None:
    """Where a field has one value only (no duration, no group), its annotation is the keyword's type."""
    types = typing.get_type_hints(FactoryOptions)
    for holder in (Configuration, ProducerConfig, ConsumerConfig):
        for name, annotation in typing.get_type_hints(holder).items():
            if name in types and float not in (annotation, *typing.get_args(annotation)) and "Config" not in str(types):
                assert types[name] == annotation, name


def test_a_type_checker_finds_misspelt_keywords_and_wrong_values(tmp_path: pathlib.Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("needs mypy")
    lines = [*HEAD.splitlines(), *RIGHT.splitlines(), *WRONG]
    path = tmp_path / "sample.py"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", str(path)]
    root = pathlib.Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=110)
    found = [line.split(": error: ") for line in done.stdout.splitlines() if ": error: " in line]
    numbers = {int(where.rpartition(":")[2]) for where, _ in found}
    first_wrong = len(lines) - len(WRONG) + 1
    assert numbers == set(range(first_wrong, len(lines) + 1)), done.stdout + done.stderr
    for where, text in found:
        assert list(WRONG.values())[int(where.rpartition(":")[2]) - first_wrong] in text


@pytest.mark.parametrize("name", sorted(FactoryOptions.__annotations__))
def test_each_typed_keyword_is_accepted(name: str) -> None:
    """A wrong value is refused for its value, not for its name."""
    try:
        load("memory:", **{name: object()})  # type: ignore[misc]  # wrong on purpose
    except Exception as error:
        assert "unknown option" not in str(error)
    else:
        pytest.fail(f"{name} accepts anything")
