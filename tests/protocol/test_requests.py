"""An answer belongs to one request, whatever the broker sends late, twice, to nobody, or of another kind."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from jmsaio.errors import ProtocolError
from jmsaio.protocol.commands import COMMANDS, Command
from jmsaio.protocol.requests import ANSWERS, Requests

pytestmark = pytest.mark.fast


class RequestsMachine(RuleBasedStateMachine):
    """``Requests`` beside a dictionary of what has no answer."""

    numbers = Bundle("numbers")

    def __init__(self) -> None:
        super().__init__()
        self.requests: Requests[object] = Requests()
        self.open: dict[int, tuple[Command, object]] = {}
        self.last = 0

    @rule(target=numbers, command=st.sampled_from(list(ANSWERS)))
    def add(self, command: Command) -> int:
        token = object()
        number = self.requests.add(command, token)
        assert number > self.last, "an id is used once"
        self.last = number
        self.open[number] = ANSWERS[command], token
        return number

    @rule(number=numbers, error=st.booleans())
    def answer(self, number: int, error: bool) -> None:
        """The first answer has the token; another one, or one that nobody awaits, has none."""
        expected, token = self.open.pop(number, (Command.SUCCESS, None))
        command = Command.ERROR if error else expected
        assert self.requests.answered(command, {"request_id": number}) is token

    @rule(number=numbers, command=st.sampled_from(sorted({*ANSWERS, *ANSWERS.values()})))
    def answer_of_another_kind(self, number: int, command: Command) -> None:
        if number in self.open and command is not self.open[number][0]:
            with pytest.raises(ProtocolError, match=f"request {number} expects .*{command.name}"):
                self.requests.answered(command, {"request_id": number})

    @rule(number=numbers)
    def answer_that_another_one_follows(self, number: int) -> None:
        """An exclusive producer waits for its turn: its request stays open."""
        expected, token = self.open.get(number, (None, None))
        if expected in (Command.PRODUCER_SUCCESS, None):
            fields = {"request_id": number, "producer_ready": False}
            assert self.requests.answered(Command.PRODUCER_SUCCESS, fields) is token

    @rule(number=consumes(numbers))
    def forget(self, number: int) -> None:
        self.requests.forget(number)
        self.open.pop(number, None)
        assert self.requests.answered(Command.SUCCESS, {"request_id": number}) is None

    @rule(number=st.integers(10**6, 2**64 - 1) | st.just(0))
    def answer_to_nobody(self, number: int) -> None:
        assert self.requests.answered(Command.SUCCESS, {"request_id": number}) is None

    @rule()
    def answer_without_an_id(self) -> None:
        assert self.requests.answered(Command.ACK_RESPONSE, {}) is None

    @rule()
    def lose_the_connection(self) -> None:
        assert self.requests.clear() == [token for _, token in self.open.values()]
        self.open.clear()

    @invariant()
    def as_many_are_open(self) -> None:
        assert len(self.requests) == len(self.open)


TestRequests = RequestsMachine.TestCase


def test_every_request_has_its_answer() -> None:
    with_an_id = {command for command, table in COMMANDS.items() if "request_id" in table.names}
    assert {*ANSWERS, *ANSWERS.values(), Command.ERROR} == with_an_id
