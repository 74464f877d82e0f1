"""All commands, as a broker writes and reads them: this client does that by hand for four of them."""

from __future__ import annotations

from jmsaio.errors import ProtocolError
from jmsaio.protocol import commands
from jmsaio.protocol.commands import I32, MESSAGE_ID, Command, body_at, wrap
from jmsaio.protocol.fields import FieldType, Table, Values, decode, encode, optional, repeated, required

U64, U32, I64, BOOL = FieldType.UINT64, FieldType.UINT32, FieldType.INT64, FieldType.BOOL
_PRODUCER = required(1, "producer_id", U64)
_CONSUMER = required(1, "consumer_id", U64)

COMMANDS: dict[int, Table] = {
    **commands.COMMANDS,
    Command.SEND: Table(
        _PRODUCER,
        required(2, "sequence_id", U64),
        optional(3, "num_messages", I32, 1),
        optional(4, "txnid_least_bits", U64),
        optional(5, "txnid_most_bits", U64),
        optional(6, "highest_sequence_id", U64, 0),
        optional(7, "is_chunk", BOOL, False),
    ),
    Command.SEND_RECEIPT: Table(_PRODUCER, required(2, "sequence_id", U64), optional(3, "message_id", MESSAGE_ID)),
    Command.MESSAGE: Table(
        _CONSUMER,
        required(2, "message_id", MESSAGE_ID),
        optional(3, "redelivery_count", U32, 0),
        repeated(4, "ack_set", I64),
    ),
    Command.ACK: Table(
        _CONSUMER,
        required(2, "ack_type", I32),
        repeated(3, "message_id", MESSAGE_ID),
        optional(6, "txnid_least_bits", U64),
        optional(7, "txnid_most_bits", U64),
        optional(8, "request_id", U64),
    ),
}


def encode_command(command: Command, /, **fields: object) -> bytes:
    """Encode a command as a frame of its own."""
    wrapped = wrap(command, encode(COMMANDS[command], fields))
    return (len(wrapped) + 4).to_bytes(4) + len(wrapped).to_bytes(4) + wrapped


def decode_command(command: int, data: bytes, start: int, end: int) -> Values:
    """Decode the fields of a command. Raises ProtocolError."""
    if command not in COMMANDS:
        raise ProtocolError(f"no command {command}")
    return decode(COMMANDS[command], data, *body_at(command, data, start, end))
