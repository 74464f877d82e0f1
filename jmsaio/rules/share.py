"""``Share``: a number of bytes that many users divide evenly."""

from __future__ import annotations

import weakref

import attrs


@attrs.define(eq=False)
class Share:
    """Bytes for all users together.

    Attributes:
        total: bytes.
    """

    total: int
    _users: weakref.WeakSet[object] = attrs.field(factory=weakref.WeakSet, init=False)

    def join(self, user: object) -> None:
        """One more user, until it leaves or is collected."""
        self._users.add(user)

    def leave(self, user: object) -> None:
        """One user less."""
        self._users.discard(user)

    @property
    def each(self) -> int:
        """Bytes of one user."""
        return self.total // max(1, len(self._users))
