"""SEND, SEND_RECEIPT, MESSAGE and ACK by hand are what the table of commands says; ack sets are Java's bit sets."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import ProtocolError
from jmsaio.protocol.commands import Command, wrap
from jmsaio.protocol.framing import Frame, Framing, entry_of
from jmsaio.protocol.messages import (
    Delivery,
    SendReceipt,
    ack,
    ack_set,
    message_id,
    read_message,
    read_receipt,
    send,
    words_of,
)
from jmsaio.protocol.metadata import Metadata, TxnId, encode_metadata
from tests.protocol.all_commands import COMMANDS, decode_command, encode_command
from tests.protocol.strategies import U64, values

pytestmark = pytest.mark.fast
METADATA = encode_metadata(Metadata("p", 5, 7))


def frame_of(stream: bytes) -> Frame:
    (frame,) = Framing().feed(stream)
    return frame


@pytest.mark.property
@given(
    st.tuples(U64, U64, st.integers(0, 1000), U64),
    st.binary(max_size=100),
    st.none() | st.builds(TxnId, U64, U64),
    st.booleans(),
)
def test_a_frame_to_send_has_its_command_and_its_entry(
    numbers: tuple[int, int, int, int], payload: bytes, txn: TxnId | None, chunk: bool
) -> None:
    producer, sequence_id, messages, highest = numbers
    frame = frame_of(
        send(
            producer,
            sequence_id,
            METADATA,
            payload,
            messages=messages,
            highest_sequence_id=highest,
            txn=txn,
            chunk=chunk,
        )
    )
    assert frame.kind == Command.SEND
    assert decode_command(Command.SEND, frame.data, frame.command, frame.rest) == {
        "producer_id": producer,
        "sequence_id": sequence_id,
        "num_messages": messages,
        **({} if txn is None else {"txnid_least_bits": txn.least, "txnid_most_bits": txn.most}),
        "highest_sequence_id": highest,
        "is_chunk": chunk,
    }
    parts = entry_of(frame)
    assert (parts.data[parts.metadata : parts.payload], parts.data[parts.payload :]) == (METADATA, payload)


@pytest.mark.property
@given(st.data())
def test_receipts_and_messages_are_read_as_the_table_reads_them(data: st.DataObject) -> None:
    receipt = data.draw(values(COMMANDS[Command.SEND_RECEIPT]))
    frame = frame_of(encode_command(Command.SEND_RECEIPT, **receipt))
    found = decode_command(Command.SEND_RECEIPT, frame.data, frame.command, frame.rest)
    place = place_of(found.get("message_id"))
    assert read_receipt(frame) == SendReceipt(found["producer_id"], found["sequence_id"], *place)
    message = data.draw(values(COMMANDS[Command.MESSAGE]))
    frame = frame_of(encode_command(Command.MESSAGE, **message))
    found = decode_command(Command.MESSAGE, frame.data, frame.command, frame.rest)
    bits = sum((word & (1 << 64) - 1) << 64 * at for at, word in enumerate(found["ack_set"]))
    assert read_message(frame) == Delivery(
        found["consumer_id"],
        *place_of(found["message_id"]),
        found["redelivery_count"],
        bits if found["ack_set"] else None,
    )


def place_of(fields: dict[str, int] | None) -> tuple[int, int]:
    if fields is None:
        return -1, -1
    numbers = fields["ledger_id"], fields["entry_id"]
    ledger, entry = (number - (1 << 64) if number >> 63 else number for number in numbers)
    return ledger, entry


def test_a_packed_ack_set_is_read() -> None:
    command = wrap(Command.MESSAGE, b"\x08\x01\x12\x04\x08\x05\x10\x06\x22\x02\x03\x01")
    assert read_message(Frame(9, command, 0, len(command), len(command))).ack_set == 3 | 1 << 64


def test_a_duplicates_receipt_has_no_place() -> None:
    nowhere = {"ledger_id": (1 << 64) - 1, "entry_id": (1 << 64) - 1}
    frame = frame_of(encode_command(Command.SEND_RECEIPT, producer_id=1, sequence_id=2, message_id=nowhere))
    receipt = read_receipt(frame)
    assert (receipt.ledger, receipt.entry) == (-1, -1)


@pytest.mark.property
@given(st.binary(max_size=100))
def test_arbitrary_bytes_are_a_value_or_a_protocol_error(data: bytes) -> None:
    for kind, read in ((Command.MESSAGE, read_message), (Command.SEND_RECEIPT, read_receipt)):
        for command in (data, wrap(kind, data), wrap(kind, b"\x08\x01\x10\x02" + data)):
            try:
                read(Frame(kind, command, 0, len(command), len(command)))
            except ProtocolError as error:
                assert str(error)


@pytest.mark.parametrize("kind", [Command.MESSAGE, Command.SEND_RECEIPT])
def test_what_is_required_is_missing(kind: Command) -> None:
    read = read_message if kind == Command.MESSAGE else read_receipt
    for fields in ({"consumer_id": 1}, {"message_id": {"ledger_id": 1}}):
        body = b"\x08\x01" if "consumer_id" in fields else b"\x12\x02\x08\x01\x1a\x02\x08\x01"
        command = wrap(kind, body)
        with pytest.raises(ProtocolError, match="without"):
            read(Frame(kind, command, 0, len(command), len(command)))


BITS = st.integers(0, (1 << 200) - 1)
IDS = st.tuples(U64, U64, st.none() | BITS, st.integers(0, 1000))


@given(BITS)
def test_words_and_bits_come_round(bits: int) -> None:
    words = words_of(bits)
    assert ack_set(words) == bits
    assert ack_set([word - (1 << 64) if word >> 63 else word for word in words]) == bits
    assert len(words) == max(1, -(-bits.bit_length() // 64))


def test_the_first_message_is_the_lowest_bit_of_the_first_word() -> None:
    assert ack_set([0b1011]) == 0b1011
    assert ack_set([-1, 1]) == (1 << 65) - 1
    assert words_of(1 << 64) == [0, 1]
    assert words_of(0) == [0]


@pytest.mark.property
@given(
    U64,
    st.lists(IDS, max_size=5),
    st.none() | st.builds(TxnId, U64, U64),
    st.none() | U64,
)
def test_a_frame_is_that_of_the_table(
    consumer: int, ids: list[tuple[int, int, int | None, int]], txn: TxnId | None, request_id: int | None
) -> None:
    frame = ack(consumer, [message_id(*each) for each in ids], txn=txn, request_id=request_id)
    assert frame == encode_command(
        Command.ACK,
        consumer_id=consumer,
        ack_type=0,
        message_id=[as_fields(*each) for each in ids],
        txnid_least_bits=None if txn is None else txn.least,
        txnid_most_bits=None if txn is None else txn.most,
        request_id=request_id,
    )


def as_fields(ledger: int, entry: int, bits: int | None, size: int) -> dict[str, object]:
    fields: dict[str, object] = {"ledger_id": ledger, "entry_id": entry}
    if bits is not None:
        words = [word - (1 << 64) if word >> 63 else word for word in words_of(bits)]
        fields |= {"ack_set": words, "batch_size": size}
    return fields
