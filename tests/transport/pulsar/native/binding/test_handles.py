"""The protocols in ``handles``, held against the installed pulsar-client: mypy can't, for it has no types."""

from __future__ import annotations

import inspect
import re
from typing import Any, Protocol

import _pulsar
import pytest

from jmsaio.transport.pulsar.native.binding import handles

CLASSES: dict[type, Any] = {
    handles.MessageIdHandle: _pulsar.MessageId,
    handles.MessageHandle: _pulsar.Message,
    handles.ConsumerHandle: _pulsar.Consumer,
    handles.ReaderHandle: _pulsar.Reader,
    handles.ProducerHandle: _pulsar.Producer,
    handles.ClientHandle: _pulsar.Client,
}
METHODS = [
    pytest.param(native, name, method, id=f"{native.__name__}.{name}")
    for handle, native in CLASSES.items()
    for base in handle.__mro__
    if base.__module__ == handles.__name__
    for name, method in vars(base).items()
    if inspect.isfunction(method) and name not in ("__init__", "__subclasshook__")
]


@pytest.mark.parametrize(("native", "name", "method"), METHODS)
def test_pulsar_client_has_each_method_with_as_many_arguments(native: Any, name: str, method: Any) -> None:
    """pybind11 writes each overload into the docstring, with ``arg0`` and so on where an argument has no name."""
    overloads = re.findall(r"\(self: [^\n]*", getattr(native, name).__doc__)
    assert len(inspect.signature(method).parameters) - 1 in [len(re.findall(r"\barg\d+:", one)) for one in overloads]


def test_each_protocol_describes_a_class_of_pulsar_client_or_a_part_of_one() -> None:
    described = {base for handle in CLASSES for base in handle.__mro__}
    protocols = {one for one in vars(handles).values() if isinstance(one, type) and Protocol in one.__bases__}
    assert {one for one in protocols if one.__module__ == handles.__name__} <= described
    assert set(CLASSES) <= protocols
