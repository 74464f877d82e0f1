"""The error tree: one root, data on the errors, and what stands outside of it."""

from __future__ import annotations

import inspect
import re
from importlib.resources import files

import pytest

from jmsaio import errors

OUTSIDE = {
    errors.NumberFormatError: ValueError,
    errors.NullValueError: TypeError,
    errors.UnsupportedOperationError: RuntimeError,
}
ALL = [value for _, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, Exception)]


@pytest.mark.parametrize("error", ALL)
def test_everything_is_in_the_tree_or_outside_on_purpose(error: type[Exception]) -> None:
    if error in OUTSIDE:
        assert issubclass(error, OUTSIDE[error]) and not issubclass(error, errors.JMSError)
    else:
        assert issubclass(error, errors.JMSError)


def test_the_guide_names_what_stands_outside_the_tree() -> None:
    """Whoever catches JMSError reads in the guide what that leaves out."""
    guide = (files("jmsaio") / "guide" / "migrating.md").read_text(encoding="utf-8")
    [row] = [line for line in guide.splitlines() if "`JMSException`" in line]
    for error, base in OUTSIDE.items():
        assert f"`{error.__name__}` (a `{base.__name__}`" in row
    assert all(f"`{name}`" in row for name in ("TimeoutError", "IndexError", "KeyError", "TypeError", "ValueError"))


def test_the_drawn_tree_is_the_tree() -> None:
    assert errors.__doc__ is not None
    drawn = re.findall(r"^([ │]*)(?:[├└]── )?(\w+Error)\b", errors.__doc__, re.MULTILINE)
    assert {name for _, name in drawn} == {error.__name__ for error in ALL if error not in OUTSIDE}
    lines = [line for line in errors.__doc__.splitlines() if re.match(r"^ +[│ ├└─]*\w+Error ", line)]
    path: list[str] = []
    for line in lines:
        name = re.search(r"\w+Error", line)
        assert name is not None
        depth = (name.start() - 4) // 4
        path[depth:] = [name.group()]
        if depth:
            assert issubclass(getattr(errors, name.group()), getattr(errors, path[depth - 1]))


@pytest.mark.parametrize("error", [error for error in ALL if error not in OUTSIDE])
def test_every_error_takes_a_code(error: type[errors.JMSError]) -> None:
    assert error("reason", error_code="code").error_code == "code"


def test_reason_code_and_cause() -> None:
    error = errors.JMSError("reason", "code")
    error.__cause__ = cause = ValueError("cause")
    assert (str(error), error.reason, error.error_code, error.linked_exception) == ("reason", "reason", "code", cause)
    assert errors.JMSError().error_code is None


@pytest.mark.parametrize(
    ("error", "data"),
    [
        (errors.InvalidSelectorError("r", "c", text="a =", column=4), {"error_code": "c", "text": "a =", "column": 4}),
        (errors.MalformedMessageError("r", "record"), {"record": "record"}),
        (errors.ConfigurationError("r", "key"), {"key": "key"}),
        (errors.BrokerUnavailableError("r", "host", 6650), {"host": "host", "port": 6650}),
        (errors.AdminError("r", 404), {"status": 404}),
        (errors.DataLossError("r", "t", "1:2", "3:0"), {"topic": "t", "wanted": "1:2", "found": "3:0"}),
    ],
)
def test_errors_carry_their_data(error: errors.JMSError, data: dict[str, object]) -> None:
    assert str(error) == "r"
    assert {key: getattr(error, key) for key in data} == data


@pytest.mark.parametrize(("status", "in_use"), [(412, True), (404, False), (None, False)])
def test_in_use_is_what_the_broker_does_not_delete(status: int | None, in_use: bool) -> None:
    assert errors.AdminError("r", status).in_use is in_use
