"""Several coroutines at the same time: what all return, or the first error."""

from __future__ import annotations

import anyio
import pytest

from jmsaio.errors import BrokerUnavailableError
from jmsaio.transport.together import together


async def test_one_failure_ends_what_belongs_together() -> None:
    ended: list[int] = []

    async def give(number: int) -> int:
        return number

    async def fail() -> int:
        raise BrokerUnavailableError("no")

    async def hang() -> int:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(1)
        return 0

    assert await together(map(give, range(3))) == [0, 1, 2]
    with pytest.raises(BrokerUnavailableError):
        await together([hang(), fail(), hang()])
    assert ended == [1, 1]
