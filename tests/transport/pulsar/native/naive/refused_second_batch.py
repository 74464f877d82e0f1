"""pulsar-client ends the process when a broker refuses a batch for its checksum while an earlier one is pending.

    pip install pulsar-client && python refused_second_batch.py

Needs nothing else: the broker is a few lines of this program. It answers no batch but the second one, with SEND_ERROR
and ChecksumError, as a broker does when one byte was damaged on the way. When the fault is gone it prints
{"survived": true}.
"""

import json
import socketserver
import threading

import pulsar

CONNECT, CONNECTED, PRODUCER, SEND, SEND_ERROR, PRODUCER_SUCCESS = 2, 3, 5, 6, 8, 17
PARTITIONS, PARTITIONS_RESPONSE, LOOKUP, LOOKUP_RESPONSE = 21, 22, 23, 24
CHECKSUM_ERROR = 9


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(fields: dict[int, int | bytes]) -> bytes:
    """A protobuf message of these fields."""
    out = b""
    for number, value in fields.items():
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def numbers(data: bytes) -> dict[int, int]:
    """The numbers among the fields of a protobuf message, and where the others begin."""
    fields, at = {}, 0

    def read() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = read()
        value = read()
        fields[tag >> 3] = value if tag & 7 == 0 else at
        at += value if tag & 7 == 2 else 0
    return fields


class Broker(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        sends = 0
        while len(size := self.rfile.read(4)) == 4:
            frame = self.rfile.read(int.from_bytes(size, "big"))
            command = frame[4 : 4 + int.from_bytes(frame[:4], "big")]
            base = numbers(command)
            kind = base[1]
            asked = numbers(command[base[kind] :]) if kind in base else {}
            if kind == CONNECT:
                self.answer(CONNECTED, {1: b"reproduction", 2: 19})
            elif kind == PARTITIONS:
                self.answer(PARTITIONS_RESPONSE, {1: 0, 2: asked[2], 3: 0})
            elif kind == LOOKUP:
                url = f"pulsar://127.0.0.1:{server.server_address[1]}".encode()
                self.answer(LOOKUP_RESPONSE, {1: url, 3: 1, 4: asked[2], 5: 1})
            elif kind == PRODUCER:
                self.answer(PRODUCER_SUCCESS, {1: asked[3], 2: b"producer", 3: (1 << 64) - 1, 6: 1})
            elif kind == SEND:
                sends += 1
                if sends == 2:
                    self.answer(SEND_ERROR, {1: asked[1], 2: asked[2], 3: CHECKSUM_ERROR, 4: b"Checksum failed"})

    def answer(self, kind: int, fields: dict[int, int | bytes]) -> None:
        command = message({1: kind, kind: message(fields)})
        self.wfile.write((len(command) + 4).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command)


server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Broker)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
client = pulsar.Client(f"pulsar://127.0.0.1:{server.server_address[1]}")
producer = client.create_producer("reproduction", batching_enabled=True, batching_max_messages=10)
refused = threading.Event()
for _ in range(10):
    producer.send_async(b"first batch", None)
for _ in range(10):
    producer.send_async(b"second batch", lambda result, place: refused.set())
refused.wait(5)
print(json.dumps({"survived": True}), flush=True)
