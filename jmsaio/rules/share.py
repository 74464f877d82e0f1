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
        """Add a user, until it leaves or is collected."""
        self._users.add(user)

    def leave(self, user: object) -> None:
        """Remove a user."""
        self._users.discard(user)

    @property
    def each(self) -> int:
        """Bytes per user."""
        return self.total // max(1, len(self._users))
