"""Feeds the decoder with messages that no one should send: changed golden records, and random bytes.

``python -m tests.codec.fuzz --seconds N [--seed S]`` prints inputs per second and their outcomes. Allowed are a message
or MessageFormatError (MalformedMessageError among them); anything else is printed with the input and ends the program
with code 1. The memory of the process is limited, so that an allocation from an unchecked length shows.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections import Counter

from jmsaio.codec import Stamp, encode, headers
from jmsaio.errors import MalformedMessageError, MessageFormatError
from jmsaio.model import wire
from jmsaio.model.headers import RESERVED
from jmsaio.model.messages.object_message import ObjectMessage
from tests.codec import golden_files
from tests.codec.described import build
from tests.codec.generated import Generator
from tests.kit.records import Record, decode

#: Bytes of address space that the program may use.
MEMORY = 1 << 30
_KINDS = ["text", "bytes", "map", "stream", "object", "header", "unknown"]
_MARKS = ["boolean", "byte", "short", "int", "integer", "long", "float", "double", "string", "null", "", "odd"]
_TEXTS = [
    "", "0", "-1", "+5", "9" * 30, "9" * 5000, "NaN", "Infinity", "1e400", "0x1p-1074", " 7 ", "true", "ID:1:2:3", "=",
    "AP+A/g==", "AP+A/g", "\0", "é😀", "topic", "persistent://", "a:", "?", "multi:,", "regex:",
]  # fmt: skip
_NAMES = [
    *sorted(RESERVED), "JMSConnectionID", "JMSXGroupID", "JMSXGroupSeq", "JMS_jmsaio_object", "n", "n_jsmtype",
    "n_jmstype", "_jsmtype", "_jmstype", "",
]  # fmt: skip
_HEADERS = ["JMSMessageID", "JMSTimestamp", "JMSRedelivered", *_NAMES]
#: Pieces of the layouts: tags, lengths at their limits, class descriptors' ends.
_PIECES = [
    b"\xac\xed\x00\x05", b"\x70", b"\x71\x00\x7e\x00\x00", b"\x71\x00\x7e\x00\x01", b"\x72", b"\x73", b"\x74", b"\x75",
    b"\x77\x00", b"\x77\x07", b"\x78", b"\x79", b"\x7a", b"\x7c", b"\x7d", b"\x7e", b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x00", b"\xff\xff", b"\x7f\xff\xff\xff\xff\xff\xff\xff",
    b"\x0b", b"\x0a", b"\x02", b"\xc0\x80", b"\xed\xa0\x80", b"\x00\x02[B", b"\x00\x10java.lang.Number",
]  # fmt: skip
_STAMP = Stamp("ID:1:1:1", "c", 1, 1, 1)


class Fuzzer:
    """Makes inputs and judges outcomes.

    Args:
        seed: the same seed gives the same inputs.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        known = [golden_files.received(case) for case in golden_files.cases()]
        made = [Record.sent(encode(build(item), _STAMP)) for item in Generator(seed).messages(120)]
        self._corpus = [record for record in known if record is not None] + made
        self.outcomes: Counter[str] = Counter()

    def input(self) -> Record:
        """The next input."""
        source = self._random.choice(self._corpus)
        record = Record(source.payload, dict(source.properties), source.key, source.event_time)
        if self._random.random() < 0.1:
            record.payload = self._random.randbytes(self._random.choice([1, 4, 30, 300]))
        elif record.payload is not None:
            record.payload = self._changed(record.payload)
        if self._random.random() < 0.2:
            record.properties[wire.MESSAGE_TYPE] = self._random.choice(_KINDS)
        for _ in range(self._random.choice([0, 0, 0, 1, 5])):
            name = self._random.choice([*_NAMES, *record.properties])
            record.properties[name] = self._random.choice([*_TEXTS, *_MARKS])
        if self._random.random() < 0.05:
            record.payload = None
        return record

    def _changed(self, payload: bytes) -> bytes:
        data = bytearray(payload)
        for _ in range(self._random.choice([0, 1, 1, 2, 8])):
            place = self._random.randrange(len(data) + 1)
            change = self._random.randrange(6)
            if change == 0 and place < len(data):
                data[place] ^= 1 << self._random.randrange(8)
            elif change == 1:
                del data[place:]
            elif change == 2:
                piece = self._random.choice(_PIECES)
                data[place : place + len(piece)] = piece
            elif change == 3:
                data[place:place] = self._random.choice(_PIECES)
            elif change == 4:
                del data[place : place + self._random.randrange(1, 9)]
            else:
                other = self._random.choice(self._corpus).payload or b""
                start = self._random.randrange(len(other) + 1)
                data[place:place] = other[start : start + self._random.randrange(1, 60)]
        return bytes(data)

    def try_one(self, record: Record) -> None:
        """Decode, read everything, and encode again. Raises the errors that are not allowed."""
        try:
            message = decode(record, None)
        except MalformedMessageError as error:
            assert error.record is record
            self.outcomes["malformed"] += 1
            return
        message._headers()
        dict(message.properties)
        if isinstance(message, ObjectMessage):
            message.get_object()
        for name in self._random.sample(_HEADERS, 4):
            headers.header(record, name)
        headers.expiration(record), headers.sender_client_id(record), headers.connection_id(record)
        try:
            encode(message, _STAMP)
        except MessageFormatError:
            self.outcomes["read, not sendable"] += 1
        else:
            self.outcomes[f"read: {message.KIND}"] += 1

    def run(self, seconds: float, inputs: int | None = None) -> int:
        """Try inputs for some seconds, or ``inputs`` of them if that is sooner; how many there were."""
        end, count = time.monotonic() + seconds, 0
        while time.monotonic() < end and count != inputs:
            record = self.input()
            count += 1
            try:
                self.try_one(record)
            except BaseException:
                print(f"input {count}: payload {record.payload!r} properties {record.properties!r}", file=sys.stderr)
                raise
        return count


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    fuzzer = Fuzzer(arguments.seed)
    started = time.monotonic()
    count = fuzzer.run(arguments.seconds)
    rate = count / (time.monotonic() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{count:,} inputs, {rate:,.0f} a second, {peak} MiB at most; no outcome that is not allowed")
    for outcome, times in fuzzer.outcomes.most_common():
        print(f"{times:>12,}  {outcome}")


if __name__ == "__main__":
    main()
