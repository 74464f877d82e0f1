"""What Spark says when our own code fails in another process, as the error that it was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from jmsaio import errors
from jmsaio.errors import JMSError

#: The last line of a traceback that Spark quotes.
_OURS: Final = re.compile(r"^\s*(?:\S+Exception: )?jmsaio\.(?:errors\.)?(\w+): (.+)$", re.MULTILINE)

_CAUSE: Final = "Caused by: "


def find_cause(text: str) -> JMSError | None:
    """The error of ours that a text of Spark quotes, None if there is none.

    Args:
        text: what Spark's exception says, with the traceback of the process that failed.
    """
    found = _OURS.findall(text)
    if not found:
        return None
    name, sentence = found[-1]
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, JMSError)):
        return None
    try:
        return kind(sentence.strip())
    except TypeError:  # it is made of more than a sentence
        return JMSError(sentence.strip())


def reason_of(error: Exception) -> str:
    """What an exception of Spark comes down to, in one line: its last cause, else what it says first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    return (causes[-1:] or lines[:1] or [type(error).__name__])[0]


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise what failed in a planner or task of ours as itself, in place of Spark's exception, which is its cause."""
    try:
        yield
    except JMSError:
        raise
    except Exception as error:
        cause = find_cause(str(error))
        if cause is None:
            raise
        raise cause from error
