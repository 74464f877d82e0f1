"""Tells a child process from its parent: whoever keeps the count of forks later sees whether it has changed."""

from __future__ import annotations

import os

#: Number of forks between the first process and this one. Reading it is far cheaper than asking for the process id.
count = 0


def _after_fork() -> None:
    global count
    count += 1


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_after_fork)
