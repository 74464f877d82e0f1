"""The table of commands is Pulsar's: each command is encoded as protobuf does, and decoded to what was encoded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import ProtocolError
from jmsaio.protocol import commands
from jmsaio.protocol.commands import (
    ANSWERS,
    Command,
    CompressionType,
    InitialPosition,
    LookupType,
    ProducerAccessMode,
    SubType,
    TxnAction,
    body_at,
    command_at,
    key_values,
    wrap,
)
from jmsaio.protocol.fields import FieldType, Table
from tests.protocol import strategies
from tests.protocol.all_commands import COMMANDS, decode_command, encode_command
from tests.protocol.pulsar_proto import fill, inner, proto
from tests.protocol.server_errors import ServerError

pytestmark = pytest.mark.fast
ALL = sorted(COMMANDS)


def cases() -> st.SearchStrategy[tuple[Command, dict[str, Any]]]:
    return st.sampled_from(ALL).flatmap(
        lambda number: st.tuples(st.just(Command(number)), strategies.values(COMMANDS[number]))
    )


@pytest.mark.parametrize("number", ALL)
def test_fields_are_those_of_pulsar(number: int) -> None:
    assert differences(COMMANDS[number], proto("BaseCommand").DESCRIPTOR.fields_by_number[number].message_type) == []


def differences(table: Table, descriptor: Any) -> list[str]:
    found = []
    for field in table.fields:
        its = descriptor.fields_by_number[field.number]
        if (its.name, its.is_repeated) != (field.name, field.repeated):
            found.append(f"{field.name} is {its.name}")
        if isinstance(field.kind, FieldType):
            kind = {"data": "bytes", "text": "string"}.get(field.kind.name.lower(), field.kind.name.lower())
            if getattr(its, f"TYPE_{kind.upper()}") != its.type:
                found.append(f"{field.name} is not {kind}")
        else:
            found += differences(field.kind, its.message_type)
    return found


@pytest.mark.property
@given(cases())
def test_protobuf_encodes_the_same_and_decoding_returns_it(case: tuple[Command, dict[str, Any]]) -> None:
    command, fields = case
    frame = encode_command(command, **fields)
    body = frame[8:]
    base = proto("BaseCommand")(type=command)
    fill(getattr(base, inner(command)), fields)
    assert body == base.SerializeToString(deterministic=True)
    assert frame[:8] == (len(body) + 4).to_bytes(4) + len(body).to_bytes(4)
    assert command_at(frame, 8, len(frame)) == command
    decoded = decode_command(command, b"before" + frame + b"after", 14, 6 + len(frame))
    assert with_defaults(COMMANDS[command], fields) == decoded


def with_defaults(table: Table, fields: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = dict(table.defaults) | {name: [] for name in table.lists}
    for field in table.fields:
        if field.name in fields:
            value, kind = fields[field.name], field.kind
            if isinstance(kind, Table):
                value = [with_defaults(kind, each) for each in value] if field.repeated else with_defaults(kind, value)
            found[field.name] = value
    return found


@pytest.mark.property
@given(st.sampled_from(ALL), st.binary(max_size=300))
def test_arbitrary_bytes_are_a_value_or_a_protocol_error(number: int, data: bytes) -> None:
    for command in (data, wrap(number, data)):
        try:
            decode_command(number, command, 0, len(command))
        except ProtocolError as error:
            assert str(error)


def test_a_command_that_no_client_gets_is_refused() -> None:
    for number in (Command.SEND, 26, 99):  # and CONSUMER_STATS_RESPONSE, and none
        frame = wrap(number, b"")
        with pytest.raises(ProtocolError, match=f"the broker sends command {int(number)}, which"):
            commands.decode_command(number, frame, 0, len(frame))


@pytest.mark.parametrize("data", [b"", b"\x10\x05", b"\x08", b"\x0a\x00"])
def test_a_command_begins_with_its_type(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        command_at(data, 0, len(data))


def test_fields_beside_the_command_are_skipped_and_a_missing_one_is_empty() -> None:
    extra = wrap(Command.PONG, b"") + b"\xf8\x7f\x01" + b"\xa5\x06abcd"
    assert body_at(Command.PONG, extra, 0, len(extra)) == (5, 5)
    assert decode_command(Command.PONG, b"\x08\x13", 0, 2) == {}


def test_key_values_are_a_list_of_pairs() -> None:
    assert key_values({"a": "1", "b": "2"}) == [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}]


def test_numbers_are_those_of_pulsar() -> None:
    """The last number of each enumeration; their order is that of the protocol."""
    kinds = (ServerError, SubType, InitialPosition, ProducerAccessMode, CompressionType, LookupType, TxnAction)
    assert [(len(kind), list(kind)[-1].name) for kind in kinds] == [
        (26, "ProducerFenced"), (4, "Key_Shared"), (2, "Earliest"), (4, "ExclusiveWithFencing"), (5, "SNAPPY"),
        (3, "Failed"), (2, "ABORT"),
    ]  # fmt: skip
    assert all(list(kind) == list(range(len(kind))) for kind in kinds)


def test_every_request_has_its_answer() -> None:
    with_an_id = {command for command, table in COMMANDS.items() if "request_id" in table.names}
    assert {*ANSWERS, *ANSWERS.values(), Command.ERROR} == with_an_id
