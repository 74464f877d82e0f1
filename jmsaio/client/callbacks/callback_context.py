"""Knowing that a call comes from entered a listener or a completion callback, and refusing what would wait for itself.

The mark is a context variable, so tasks that a callback starts carry it, too: a callback that awaits such a task would
wait for itself just as well. It goes out with the callback, so a task that outlives it is free again.

Rules: jms-spec 5.2, 5.3, 6.5 (own MessageListener: close and stop are refused), 10.11 (own CompletionListener: close,
commit and rollback are refused; start and stop are allowed).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs

from jmsaio.errors import IllegalStateError


class CallbackKind(enum.Enum):
    """Which callback is running."""

    LISTENER = "MessageListener"
    COMPLETION = "CompletionListener"


@attrs.define(eq=False)
class CallbackContext:
    """One running callback: the session it belongs to, its connection, and its producer or consumer."""

    kind: CallbackKind
    connection: object
    session: object
    owner: object
    active: bool = True


_current: ContextVar[CallbackContext | None] = ContextVar("jmsaio_callback", default=None)


def current() -> CallbackContext | None:
    """The callback that this call comes from, or None."""
    callback = _current.get()
    return callback if callback is not None and callback.active else None


def listens(target: object) -> bool:
    """Whether this call comes from a message listener of ``target``, a session or connection, that has not returned.

    What is being closed stays usable to it until then (jms-spec 5.3).
    """
    callback = current()
    return (
        callback is not None
        and callback.kind is CallbackKind.LISTENER
        and (callback.session is target or callback.connection is target)
    )


@contextmanager
def entered(callback: CallbackContext) -> Iterator[None]:
    """Mark what runs in the block as called from ``callback``."""
    token = _current.set(callback)
    try:
        yield
    finally:
        callback.active = False
        _current.reset(token)


def leave() -> None:
    """Forget the mark in this task: it is not the callback's, although it was started there."""
    _current.set(None)


def refuse(
    call: str, target: object, kinds: tuple[CallbackKind, ...] = (CallbackKind.LISTENER, CallbackKind.COMPLETION)
) -> None:
    """Raise IllegalStateError when ``call`` on ``target`` comes from a callback of ``target``.

    Args:
        call: the call's name for the error.
        target: connection, session or producer of the callback.
        kinds: the kinds of callback that may not call it.
    """
    callback = current()
    if callback is None or callback.kind not in kinds:
        return
    if target is callback.connection or target is callback.session or target is callback.owner:
        raise IllegalStateError(
            f"{call} from its own {callback.kind.value} would wait for itself; call it after the callback returned"
        )
