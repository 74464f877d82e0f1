"""Requests of one connection: which answers are awaited, and what an answer belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final, Generic, TypeVar

import attrs

from jmsaio.errors import ProtocolError
from jmsaio.protocol.commands import Command

Token = TypeVar("Token")

#: The command that answers a request; ERROR answers any.
ANSWERS: Final[Mapping[Command, Command]] = {
    Command.PRODUCER: Command.PRODUCER_SUCCESS,
    Command.SUBSCRIBE: Command.SUCCESS,
    Command.UNSUBSCRIBE: Command.SUCCESS,
    Command.SEEK: Command.SUCCESS,
    Command.CLOSE_PRODUCER: Command.SUCCESS,
    Command.CLOSE_CONSUMER: Command.SUCCESS,
    Command.ACK: Command.ACK_RESPONSE,
    Command.LOOKUP: Command.LOOKUP_RESPONSE,
    Command.PARTITIONED_METADATA: Command.PARTITIONED_METADATA_RESPONSE,
    Command.GET_LAST_MESSAGE_ID: Command.GET_LAST_MESSAGE_ID_RESPONSE,
    Command.GET_TOPICS_OF_NAMESPACE: Command.GET_TOPICS_OF_NAMESPACE_RESPONSE,
    Command.NEW_TXN: Command.NEW_TXN_RESPONSE,
    Command.ADD_PARTITION_TO_TXN: Command.ADD_PARTITION_TO_TXN_RESPONSE,
    Command.ADD_SUBSCRIPTION_TO_TXN: Command.ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
    Command.END_TXN: Command.END_TXN_RESPONSE,
    Command.TC_CLIENT_CONNECT_REQUEST: Command.TC_CLIENT_CONNECT_RESPONSE,
    Command.WATCH_TOPIC_LIST: Command.WATCH_TOPIC_LIST_SUCCESS,
    Command.WATCH_TOPIC_LIST_CLOSE: Command.SUCCESS,
}


@attrs.define(eq=False)
class Requests(Generic[Token]):
    """The requests of one connection that have no answer yet."""

    _numbers: Iterator[int] = attrs.field(factory=lambda: count(1), init=False)
    _open: dict[int, tuple[Command, Token]] = attrs.field(factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._open)

    def add(self, command: Command, token: Token) -> int:
        """Return the id of a new request, whose answer belongs to ``token``."""
        number = next(self._numbers)
        self._open[number] = ANSWERS[command], token
        return number

    def forget(self, number: int) -> None:
        """Ignore the answer of a request, which nobody awaits any more."""
        self._open.pop(number, None)

    def answered(self, command: int, fields: Mapping[str, Any]) -> Token | None:
        """Return what an answer belongs to; None if nobody awaits it (any more).

        The first answer to a producer that waits for exclusive access says so, and another one follows: the request
        stays open. Raises ProtocolError if the request has an answer of another kind.
        """
        number = fields.get("request_id", -1)
        found = self._open.get(number)
        if found is None:
            return None
        expected, token = found
        if command not in (expected, Command.ERROR):
            raise ProtocolError(
                f"request {number} expects {expected.name}, and the broker answers {Command(command).name}"
            )
        if fields.get("producer_ready", True):
            del self._open[number]
        return token

    def clear(self) -> list[Token]:
        """Return and forget everything without an answer: the connection is lost."""
        tokens = [token for _, token in self._open.values()]
        self._open.clear()
        return tokens
