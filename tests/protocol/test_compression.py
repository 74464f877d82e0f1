"""A payload is expanded to what it was, or refused: nothing is believed, and never more made than it announces."""

from __future__ import annotations

import sys
import tracemalloc
import zlib

import pytest
from hypothesis import given, strategies as st

from jmsaio.errors import ProtocolError
from jmsaio.protocol.commands import CompressionType
from jmsaio.protocol.compression import LARGEST, compressor, expand, fast

pytestmark = pytest.mark.fast
KINDS = [kind for kind in CompressionType if kind is not CompressionType.NONE]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
BODY = b"a body, and the same again: a body" * 50


@pytest.mark.property
@given(st.sampled_from(CompressionType), st.binary(max_size=50), st.integers(1, 300))
def test_payloads_come_round(kind: CompressionType, part: bytes, times: int) -> None:
    body = part * times
    assert expand(kind, compressor(kind)(body), len(body)) == body


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (CompressionType.LZ4, "4068616c6c"),
        (CompressionType.SNAPPY, "040c68616c6c"),
        (CompressionType.ZSTD, "28b52ffd200421000068616c6c"),
    ],
)
def test_the_formats_are_those_of_pulsars_other_clients(kind: CompressionType, written: str) -> None:
    """A block, frames and raw data, as the specification of each format has them."""
    assert expand(kind, bytes.fromhex(written), 4) == b"hall"


def test_a_zlib_stream_without_an_end_is_read() -> None:
    """Java flushes, and does not finish it."""
    stream = zlib.compressobj()
    written = stream.compress(BODY) + stream.flush(zlib.Z_SYNC_FLUSH)
    assert expand(CompressionType.ZLIB, written, len(BODY)) == BODY


@pytest.mark.property
@given(st.sampled_from(KINDS), st.binary(max_size=100), st.integers(0, 200), st.data())
def test_arbitrary_bytes_have_the_announced_size_or_are_refused(
    kind: CompressionType, data: bytes, size: int, draw: st.DataObject
) -> None:
    written = bytearray(compressor(kind)(b"some text, some text " * 5))
    written[draw.draw(st.integers(0, len(written) - 1))] = draw.draw(st.integers(0, 255))
    for each in (data, bytes(written)):
        try:
            assert len(expand(kind, each, size)) == size
        except ProtocolError as error:
            assert str(error)


@each_kind
@pytest.mark.parametrize("size", [0, 10, len(BODY) - 1, len(BODY) + 1, LARGEST + 1])
def test_another_size_than_announced_is_refused(kind: CompressionType, size: int) -> None:
    with pytest.raises(ProtocolError, match=str(size)):
        expand(kind, compressor(kind)(BODY), size)


@each_kind
def test_what_is_cut_off_or_empty_or_nonsense_is_refused(kind: CompressionType) -> None:
    for data in (compressor(kind)(BODY)[:20], b"", b"nonsense", bytes(100)):
        with pytest.raises(ProtocolError, match=f"compressed with {kind.name}|announces {len(BODY)} bytes"):
            expand(kind, data, len(BODY))


@each_kind
def test_a_bomb_takes_no_more_memory_than_it_announces(kind: CompressionType) -> None:
    bomb = compressor(kind)(bytes(20_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            expand(kind, bomb, 1000)
        with pytest.raises(ProtocolError, match="announces 4294967295: too many"):
            expand(kind, bomb, (1 << 32) - 1)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_an_unknown_compression_is_refused() -> None:
    with pytest.raises(ProtocolError, match="compressed with 99"):
        expand(99, b"x", 1)


@each_kind
def test_without_the_library_the_error_says_what_to_install(
    kind: CompressionType, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = compressor(kind)(BODY)
    assert fast() == "LZ4"
    monkeypatch.setitem(sys.modules, "cramjam", None)
    assert fast() == "ZLIB"
    if kind is CompressionType.ZLIB:
        assert zlib.decompress(compressor(kind)(BODY)) == expand(kind, data, len(BODY)) == BODY
        return
    words = rf"{kind.name} needs cramjam: pip install 'jmsaio\[compression\]'; transport=pulsar-client has it"
    with pytest.raises(ImportError, match=words):
        compressor(kind)
    with pytest.raises(ProtocolError, match=words):
        expand(kind, data, len(BODY))
