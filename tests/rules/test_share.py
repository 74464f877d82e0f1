"""``Share``: bytes divided among users."""

from __future__ import annotations

import gc

from jmsaio.rules.share import Share


class User:
    pass


def test_users_divide_evenly_until_they_leave_or_are_gone() -> None:
    share, one, two = Share(100), User(), User()
    assert share.each == 100
    share.join(one)
    share.join(one)
    assert share.each == 100
    share.join(two)
    assert share.each == 50
    share.leave(one)
    share.leave(one)
    assert share.each == 100
    share.join(one)
    del two
    gc.collect()
    assert share.each == 100
