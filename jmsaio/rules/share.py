"""``Share``: a number of bytes that is divided evenly among its users."""

from __future__ import annotations

import weakref

import attrs


@attrs.define(eq=False)
class Share:
    """Bytes for all users together."""

    total: int
    _users: weakref.WeakSet[object] = attrs.field(factory=weakref.WeakSet, init=False)

    def join(self, user: object) -> None:
        self._users.add(user)

    def leave(self, user: object) -> None:
        self._users.discard(user)

    @property
    def each(self) -> int:
        return self.total // max(1, len(self._users))
