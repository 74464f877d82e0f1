"""What a callback of the application is not allowed to call.

A running message or completion listener is marked, and calls that would wait for the callback itself are refused.

The mark is a context variable, so tasks started by a callback inherit it: a callback that awaits such a task would wait
for itself as well. The mark ends with the callback, so a task that outlives the callback is no longer restricted.

Jakarta Messaging 3.1, 6.1.5 Pausing delivery of incoming messages, 6.1.8 Closing a connection and 6.2.15 Closing a
session: a MessageListener must not close its own connection or session, nor stop its own connection.
7.3.4 Close, commit or rollback: a CompletionListener must not close, commit or roll back its own session, nor close its
own connection or producer; it can start and stop the connection.
"""

from __future__ import annotations

import enum
from contextvars import ContextVar, Token

import attrs

from jmsaio.errors import IllegalStateError


class CallbackKind(enum.Enum):
    """The kind of callback that is running."""

    LISTENER = "MessageListener"
    COMPLETION = "CompletionListener"


@attrs.define(eq=False)
class CallbackContext:
    """A running callback; entered once by ``with``, it marks calls in the block as calls from the callback."""

    kind: CallbackKind
    connection: object
    session: object
    owner: object
    active: bool = True
    _token: Token[CallbackContext | None] | None = None

    def __enter__(self) -> None:
        self._token = _current.set(self)

    def __exit__(self, *error: object) -> None:
        self.active = False
        assert self._token is not None  # it was entered
        _current.reset(self._token)


_current: ContextVar[CallbackContext | None] = ContextVar("jmsaio_callback", default=None)


def current() -> CallbackContext | None:
    callback = _current.get()
    return callback if callback is not None and callback.active else None


def listens(target: object) -> bool:
    """Return whether this code runs in a message listener of a session or connection, usable until that returns."""
    callback = current()
    return (
        callback is not None
        and callback.kind is CallbackKind.LISTENER
        and (callback.session is target or callback.connection is target)
    )


def unmark() -> None:
    """Remove the mark from this task, which does not belong to the callback that started it."""
    _current.set(None)


def refuse(
    call: str, target: object, kinds: tuple[CallbackKind, ...] = (CallbackKind.LISTENER, CallbackKind.COMPLETION)
) -> None:
    callback = current()
    if callback is None or callback.kind not in kinds:
        return
    if target is callback.connection or target is callback.session or target is callback.owner:
        raise IllegalStateError(
            f"{call} from its own {callback.kind.value} would wait for itself; call it after the callback returned"
        )
