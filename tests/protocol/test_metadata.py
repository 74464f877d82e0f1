"""Metadata is written as protobuf writes it, and read back as it was written; properties stay packed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import ProtocolError
from jmsaio.model.packed import pack, unpack
from jmsaio.protocol.fields import walk
from jmsaio.protocol.metadata import (
    Metadata,
    SingleMetadata,
    TxnId,
    decode_metadata,
    decode_single,
    encode_metadata,
    encode_single,
)
from tests.protocol.pulsar_proto import fill, proto
from tests.protocol.strategies import TEXTS, U64

pytestmark = pytest.mark.fast
INT32 = st.integers(0, (1 << 31) - 1)
#: Fields that Pulsar has and this client does not read, and some that no one knows.
UNREAD = "replicated_from", "partition_key_b64_encoded", "ordering_key", "marker_type", "null_partition_key"
UNKNOWN = "fa0f0178", "8002ff01", "7d00000000", "f802ff01", "2a0178", "880101", "92010178", "a00101", "f00101"
PROPERTIES = st.dictionaries(TEXTS, st.one_of(TEXTS, st.just("x" * 200)), max_size=4)
KEYS = st.none() | TEXTS.map(str.encode)
SINGLES = st.builds(
    SingleMetadata,
    INT32,
    KEYS,
    st.booleans(),
    U64,
    st.none() | U64,
    st.booleans(),
)
METADATA = st.builds(
    Metadata,
    producer_name=TEXTS,
    sequence_id=U64,
    publish_time=U64,
    packed=PROPERTIES.map(pack),
    partition_key=KEYS,
    compression=st.integers(0, 4),
    uncompressed_size=INT32,
    num_messages_in_batch=st.none() | INT32,
    event_time=U64,
    encrypted=st.just(False),
    schema_version=st.none() | st.binary(max_size=9),
    deliver_at_time=st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
    txn=st.none() | st.builds(TxnId, U64, U64),
    highest_sequence_id=U64,
    null_value=st.booleans(),
    uuid=st.none() | TEXTS,
    num_chunks_from_msg=st.none() | INT32,
    total_chunk_msg_size=st.none() | INT32,
    chunk_id=st.none() | INT32,
)


def as_fields(value: Metadata | SingleMetadata) -> dict[str, Any]:
    """The fields that are set, as protobuf has them."""
    fields = {name: field for name, field in value._asdict().items() if field is not None and field not in (False, 0)}
    fields = {name: each.decode() if name == "partition_key" else each for name, each in fields.items()}
    txn = fields.pop("txn", None)
    if txn is not None:
        fields |= {"txnid_least_bits": txn.least, "txnid_most_bits": txn.most}
    fields.pop("packed", None)
    for name in ("num_messages_in_batch", "deliver_at_time", "num_chunks_from_msg", "sequence_id"):
        if getattr(value, name, None) == 0:
            fields[name] = 0
    for name in ("total_chunk_msg_size", "chunk_id", "publish_time", "payload_size"):
        if getattr(value, name, None) == 0:
            fields[name] = 0
    return fields


@pytest.mark.property
@given(METADATA, PROPERTIES)
def test_an_entrys_metadata_is_that_of_protobuf_and_comes_round(metadata: Metadata, properties: dict[str, str]) -> None:
    metadata = metadata._replace(packed=pack(properties))
    encoded = encode_metadata(metadata)
    pairs = [{"key": key, "value": value} for key, value in properties.items()]
    expected = fill(proto("MessageMetadata")(), as_fields(metadata) | {"properties": pairs})
    assert encoded == expected.SerializeToString(deterministic=True)
    assert decode_metadata(b"before" + encoded + b"after", 6, 6 + len(encoded)) == metadata


@pytest.mark.property
@given(METADATA, PROPERTIES, st.data())
def test_fields_in_any_order_twice_or_unknown_are_read_as_protobuf_reads_them(
    metadata: Metadata, properties: dict[str, str], data: st.DataObject
) -> None:
    """A tag can also have more bytes than it needs."""
    encoded = encode_metadata(metadata._replace(packed=pack(properties)))
    starts = [0, *[stop for _, _, stop in walk(encoded, 0, len(encoded))]]
    fields = [encoded[start:stop] for start, stop in pairwise(starts)]
    twice = data.draw(st.lists(st.sampled_from([one for one in fields if one[0] != 0x22]), max_size=3))
    unknown = data.draw(st.lists(st.sampled_from(UNKNOWN)))
    mixed = data.draw(st.permutations([*fields, *twice, *map(bytes.fromhex, unknown)]))
    if data.draw(st.booleans()):
        mixed = [bytes([one[0] | 128, 0]) + one[1:] if one[0] < 128 else one for one in mixed]
    found = decode_metadata(b"".join(mixed), 0, sum(map(len, mixed)))
    pairs = [{"key": key, "value": value} for key, value in unpack(found.packed).items()]
    expected = proto("MessageMetadata").FromString(b"".join(mixed))
    expected.DiscardUnknownFields()
    for name in UNREAD:
        expected.ClearField(name)
    assert fill(proto("MessageMetadata")(), as_fields(found) | {"properties": pairs}) == expected


@pytest.mark.property
@given(SINGLES)
def test_a_messages_metadata_is_that_of_protobuf_and_comes_round(single: SingleMetadata) -> None:
    encoded = encode_single(single)
    expected = fill(proto("SingleMessageMetadata")(), as_fields(single))
    assert encoded == expected.SerializeToString(deterministic=True)
    assert decode_single(b"before" + encoded + b"after", 6, 6 + len(encoded)) == single


@pytest.mark.property
@given(st.binary(max_size=300), METADATA, st.data())
def test_arbitrary_bytes_are_a_value_or_a_protocol_error(data: bytes, metadata: Metadata, draw: st.DataObject) -> None:
    encoded = bytearray(encode_metadata(metadata))
    encoded[draw.draw(st.integers(0, len(encoded) - 1))] = draw.draw(st.integers(0, 255))
    for each in (data, bytes(encoded), b"\x0a\x00\x10\x00\x18\x00" + data):
        for decode in (decode_metadata, decode_single):
            try:
                decode(each, 0, len(each))
            except ProtocolError as error:
                assert str(error)


@pytest.mark.parametrize("left_out", [0, 1, 2])
def test_a_required_field_is_missing(left_out: int) -> None:
    fields = [b"\x0a\x01p", b"\x10\x05", b"\x18\x07"]
    assert decode_metadata(b"".join(fields), 0, 7) == Metadata("p", 5, 7)
    del fields[left_out]
    encoded = b"".join(fields)
    with pytest.raises(ProtocolError, match="metadata without"):
        decode_metadata(encoded, 0, len(encoded))


def test_an_encrypted_entry_is_recognized_and_never_written() -> None:
    fields = {"encryption_keys": [{"key": "k", "value": b"v"}], "encryption_algo": "RSA"}
    keys = fill(proto("MessageMetadata")(), fields)
    encoded = b"\x0a\x01p\x10\x05\x18\x07" + keys.SerializeToString()
    metadata = decode_metadata(encoded, 0, len(encoded))
    assert metadata.encrypted
    with pytest.raises(ValueError, match="encrypted"):
        encode_metadata(metadata)


def test_a_key_that_is_no_text_hinders_nobody_else() -> None:
    encoded = b"\x12\x01\xff\x18\x03"
    assert decode_single(encoded, 0, len(encoded)) == SingleMetadata(3, b"\xff")


@pytest.mark.parametrize("encoded", ["", "2805", "18ffffffffffffffffff01", "18030a0461626364"])
def test_a_message_needs_a_size_and_has_its_properties_in_front(encoded: str) -> None:
    data = bytes.fromhex(encoded)
    with pytest.raises(ProtocolError, match="a message of a batch has"):
        decode_single(data, 0, len(data))


@pytest.mark.parametrize("packed", [b"\x0b\x00", b"\x0a", b"\x0a\x05ab", b"\x0a\x80\x01ab"])
def test_properties_that_are_not_packed_are_never_written(packed: bytes) -> None:
    with pytest.raises(ValueError, match="packed properties"):
        encode_metadata(Metadata("p", 1, 2, packed))
