"""The public names, one by one: whoever adds or removes one says so here. And what importing them does not bring in."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from typing import get_type_hints

import attrs
import pytest

import jmsaio
from jmsaio.config import Configuration

#: Nothing that only an edge needs: not the command line's, the REST interface's, the pipeline's or a plot's library.
NOT_IMPORTED = ("click", "rich", "httpx", "pyspark", "pyarrow", "matplotlib", "trio", "uvloop", "yaml")

EXPORTS = """
    AcknowledgeMode AdminError BrokerUnavailableError Byte BytesMessage Char CompletionListener
    ConfigurationError Connection ConnectionFactory ConnectionMetaData ConnectionState ConnectionStats
    ConsumerBusyError ConsumerStats Context
    DeliveryMode Destination Double Enumeration ExceptionListener Float ForkError IllegalArgumentError
    IllegalStateError Int InvalidClientIDError InvalidDestinationError InvalidSelectorError JMSError JMSProducer
    JMSSecurityError JavaObject Long MalformedMessageError MapMessage Message MessageConsumer MessageEOFError
    MessageFormatError MessageListener MessageNotReadableError MessageNotWriteableError MessageProducer
    MessageTooLargeError NotFoundError NullValueError NumberFormatError ObjectClosedError ObjectMessage
    OperationTimeoutError ProducerStats Queue QueueBrowser QueueRequestor Receipt ResourceAllocationError Schema
    Selector SendError SendInDoubtError Session Short StateChange StreamMessage TemporaryQueue
    TemporaryTopic TextMessage Topic TopicRequestor TransactionInDoubtError TransactionInProgressError
    TransactionRolledBackError TransportError UnsupportedOperationError WireId __version__ connect
"""


def test_exports_are_pinned() -> None:
    assert set(jmsaio.__all__) == set(EXPORTS.split())


def test_every_export_is_there_once_and_documented() -> None:
    assert len(jmsaio.__all__) == len(set(jmsaio.__all__))
    for name in jmsaio.__all__:
        value = getattr(jmsaio, name)
        if inspect.isclass(value) or inspect.isroutine(value):
            assert value.__doc__, f"{name} has no docstring"


def test_every_export_that_is_not_a_union_says_that_it_is_of_the_package() -> None:
    values = [getattr(jmsaio, name) for name in jmsaio.__all__]
    named = [value for value in values if inspect.isclass(value) or inspect.isroutine(value)]
    assert len(values) - len(named) == 3, "__version__, ExceptionListener and MessageListener"
    assert {value.__name__ for value in named if value.__module__ != "jmsaio"} == set()


@pytest.mark.parametrize("name", [name for name in jmsaio.__all__ if inspect.isclass(getattr(jmsaio, name))])
def test_a_class_pickles_by_its_public_name(name: str) -> None:
    kind = getattr(jmsaio, name)
    assert pickle.loads(pickle.dumps(kind)) is kind


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_values_and_errors_pickle(protocol: int) -> None:
    values = (jmsaio.WireId(1, 2), jmsaio.Short(3), jmsaio.Queue("q"), jmsaio.AcknowledgeMode.CLIENT)
    assert pickle.loads(pickle.dumps(values, protocol)) == values
    error = pickle.loads(pickle.dumps(jmsaio.NotFoundError("no topic"), protocol))
    assert type(error) is jmsaio.NotFoundError and str(error) == "no topic"


def test_the_directory_of_the_package_has_public_names_only() -> None:
    assert dir(jmsaio) == sorted(jmsaio.__all__)


#: Classes of attrs that applications construct.
CONSTRUCTED = {"StateChange", "ConnectionFactory", "Destination", "JavaObject", "Queue", "Schema", "Topic"}


def test_no_help_opens_with_arguments_that_only_the_library_passes() -> None:
    kinds = {name: kind for name in jmsaio.__all__ if attrs.has(kind := getattr(jmsaio, name))}
    shown = {name for name, kind in kinds.items() if inspect.signature(kind).parameters}
    assert shown - CONSTRUCTED == set()


def test_frameworks_can_read_the_types_of_every_public_class_and_method() -> None:
    """``typing.get_type_hints`` finds the names, though a class is presented as one of ``jmsaio``."""
    kinds = [value for name in jmsaio.__all__ if callable(value := getattr(jmsaio, name))]
    classes = [kind for kind in kinds if isinstance(kind, type)]
    methods = [each for kind in classes for name, each in vars(kind).items() if name == "__init__" or name[0] != "_"]
    functions = [getattr(each, "fget", None) or getattr(each, "__func__", each) for each in methods]
    for each in [*kinds, *filter(inspect.isfunction, functions)]:
        get_type_hints(each)
    assert get_type_hints(jmsaio.ConnectionFactory)["configuration"] is Configuration


def test_no_repr_shows_private_fields() -> None:
    """The repr that attrs generates shows each field: sessions, locks and buffers."""
    kinds = [value for name in jmsaio.__all__ if attrs.has(value := getattr(jmsaio, name))]
    generated = [kind for kind in kinds if "attrs generated" in kind.__repr__.__code__.co_filename]
    shown = {kind.__name__: [field.name for field in attrs.fields(kind) if field.repr] for kind in generated}
    assert {name: fields for name, fields in shown.items() if any(field[0] == "_" for field in fields)} == {}


def test_a_star_import_brings_each_public_name() -> None:
    names: dict[str, object] = {}
    exec("from jmsaio import *", names)
    assert set(jmsaio.__all__) <= set(names)


@pytest.mark.parametrize("library", NOT_IMPORTED)
def test_importing_brings_in_no_library_of_an_edge(library: str, modules_after_import: frozenset[str]) -> None:
    assert library not in modules_after_import


def test_importing_loads_no_native_client(modules_after_import: frozenset[str]) -> None:
    assert "_pulsar" not in modules_after_import, "the embedded broker does without it"


def test_the_client_and_selectors_are_loaded_when_they_are_first_used() -> None:
    script = """
import sys, jmsaio
assert not any(name.startswith("jmsaio.client") for name in sys.modules), "Spark's processes need no client"
assert "lark" not in sys.modules, "nor the grammar of selectors"
assert jmsaio.connect is jmsaio.client.factory.connect and "connect" in vars(jmsaio)
assert jmsaio.client.session.Session.__module__ == "jmsaio", "also where nobody asked for the public name"
assert jmsaio.Selector is jmsaio.selector.Selector
try:
    jmsaio.conect
except AttributeError as error:
    assert str(error) == "module 'jmsaio' has no attribute 'conect'"
else:
    raise AssertionError("a misspelt name is an error")
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.fixture(scope="module")
def modules_after_import() -> frozenset[str]:
    """The top-level modules in a fresh interpreter after ``import jmsaio``."""
    code = "import sys, jmsaio; print(' '.join({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return frozenset(done.stdout.split())
