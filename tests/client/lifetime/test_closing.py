"""``async with`` on an open object closes it once, whatever the block does."""

from __future__ import annotations

import attrs
import pytest

import jmsaio
from jmsaio.client.lifetime.closing import AsyncClosing

NOUNS = [
    jmsaio.ConnectionFactory,
    jmsaio.Connection,
    jmsaio.Context,
    jmsaio.MessageConsumer,
    jmsaio.MessageProducer,
    jmsaio.QueueBrowser,
    jmsaio.QueueRequestor,
    jmsaio.Session,
    jmsaio.TopicRequestor,
]


@attrs.define
class Thing(AsyncClosing):
    closed: int = 0

    async def close(self) -> None:
        self.closed += 1


async def test_the_object_itself_is_given_and_closed_at_the_end() -> None:
    thing = Thing()
    async with thing as given:
        assert given is thing and thing.closed == 0
    assert thing.closed == 1


async def test_an_error_of_the_block_passes_after_the_close() -> None:
    thing = Thing()
    with pytest.raises(ZeroDivisionError):
        async with thing:
            raise ZeroDivisionError
    assert thing.closed == 1


@pytest.mark.parametrize("noun", NOUNS, ids=lambda noun: noun.__name__)
def test_everything_that_closes_has_it_from_here(noun: type[object]) -> None:
    assert issubclass(noun, AsyncClosing)
    assert "__aenter__" not in vars(noun)
