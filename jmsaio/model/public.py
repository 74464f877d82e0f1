"""How public names appear to users: as names of ``jmsaio``, and without the arguments that only the library passes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=type)

_WITHOUT_ARGUMENTS = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)])


def public(value: T) -> T:
    """Present a class or function as a name of ``jmsaio``, in whichever module it is defined."""
    value.__module__ = "jmsaio"
    return value


def created_by(call: str) -> Callable[[K], K]:
    """Hide the constructor's arguments of a class whose objects only the library creates.

    ``help`` shows none, and names ``call``. The constructor itself stays as attrs generated it, as fast as before, and
    type checkers still check the library's own calls.

    Args:
        call: what an application calls instead.
    """

    def hide(kind: K) -> K:
        construct: Callable[..., None] = kind.__init__  # type: ignore[misc]  # of this very class
        construct.__doc__ = f"Not for applications, which call {call}."
        construct.__signature__ = _WITHOUT_ARGUMENTS  # type: ignore[attr-defined]  # inspect.signature reads it
        return kind

    return hide
