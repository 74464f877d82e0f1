"""Ack sets are Java's bit sets; ACK frames are those of the table of commands."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from jmsaio.protocol.acks import ack, ack_set, message_id, words_of
from jmsaio.protocol.commands import Command, encode_command
from jmsaio.protocol.metadata import TxnId
from tests.protocol.strategies import U64

pytestmark = pytest.mark.fast
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
