"""Conversion of Spark's exceptions back to the errors of jmsaio raised in other processes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from jmsaio import errors
from jmsaio.errors import JMSError

#: Last line of a traceback in an exception of Spark.
_OURS: Final = re.compile(r"^\s*(?:\S+Exception: )?jmsaio\.(?:errors\.)?(\w+): (.+)$", re.MULTILINE)
_CAUSE: Final = "Caused by: "


def find_cause(text: str) -> JMSError | None:
    """Return the jmsaio error quoted in a Spark exception's text, which has the failed process's traceback, or None."""
    found = _OURS.findall(text)
    if not found:
        return None
    name, sentence = found[-1]
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, JMSError)):
        return None
    try:
        return kind(sentence.strip())
    except TypeError:  # its constructor needs more than a sentence
        return JMSError(sentence.strip())


def reason_of(error: Exception) -> str:
    """Return the reason of a Spark exception in one line: its last cause, else its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    return (causes[-1:] or lines[:1] or [type(error).__name__])[0]


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise the original jmsaio error of a planner or task instead of Spark's exception, which becomes its cause."""
    try:
        yield
    except JMSError:
        raise
    except Exception as error:
        cause = find_cause(str(error))
        if cause is None:
            raise
        raise cause from error
