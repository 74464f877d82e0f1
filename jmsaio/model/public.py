"""How public names appear to users: as names of ``jmsaio``, without the arguments that only the library passes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=type)

_WITHOUT_ARGUMENTS = inspect.Signature([inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)])


def public(value: T) -> T:
    """Present a class or function as a name of ``jmsaio``, in whichever module it is defined.

    ``typing.get_type_hints`` would look there for the names in annotations; they are replaced by what they mean.
    """
    if isinstance(value, type):
        _resolve_annotations(value)
    value.__module__ = "jmsaio"
    return value


def _resolve_annotations(kind: type) -> None:
    known = vars(sys.modules[kind.__module__])
    resolved = dict(kind.__annotations__)
    for name, annotation in kind.__annotations__.items():
        if isinstance(annotation, str):
            try:
                resolved[name] = eval(annotation, dict(known), dict(vars(kind)))  # our own source
            except NameError:
                resolved[name] = Any if name.startswith("_") else annotation
    kind.__annotations__ = resolved


def created_by(call: str) -> Callable[[K], K]:
    """Hide the constructor's arguments of a class whose objects only the library creates.

    ``help`` shows none, and names ``call``, which an application calls instead. The constructor itself stays as attrs
    generated it, and type checkers still check the library's own calls.
    """

    def hide(kind: K) -> K:
        construct: Callable[..., None] = kind.__init__  # type: ignore[misc]  # of this very class
        construct.__annotations__ = {}  # of private types
        construct.__doc__ = f"Not for applications, which call {call}."
        construct.__signature__ = _WITHOUT_ARGUMENTS  # type: ignore[attr-defined]  # inspect.signature reads it
        return kind

    return hide
