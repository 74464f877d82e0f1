"""The commands between a client and a broker of Pulsar 4.0: numbers, fields, and a whole frame of each.

Each is a message inside ``BaseCommand``, under the field with the command's number. SEND, MESSAGE, ACK and
SEND_RECEIPT are frequent, and therefore written and read by hand, in ``messages``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from struct import Struct
from typing import Final

from jmsaio.errors import ProtocolError
from jmsaio.model.packed import varint
from jmsaio.protocol.fields import FieldType, Table, Values, decode, encode, optional, repeated, required, walk

U64, U32, I64, I32 = FieldType.UINT64, FieldType.UINT32, FieldType.INT64, FieldType.INT32
BOOL, TEXT, DATA = FieldType.BOOL, FieldType.TEXT, FieldType.DATA

#: Version of the protocol that this table implements: Pulsar 4.0's.
PROTOCOL_VERSION: Final = 21
_SIZES: Final = Struct(">II").pack


class Command(enum.IntEnum):
    """Types of the commands that this client sends or gets, with the protocol's names and numbers."""

    CONNECT = 2
    CONNECTED = 3
    SUBSCRIBE = 4
    PRODUCER = 5
    SEND = 6
    SEND_RECEIPT = 7
    SEND_ERROR = 8
    MESSAGE = 9
    ACK = 10
    FLOW = 11
    UNSUBSCRIBE = 12
    SUCCESS = 13
    ERROR = 14
    CLOSE_PRODUCER = 15
    CLOSE_CONSUMER = 16
    PRODUCER_SUCCESS = 17
    PING = 18
    PONG = 19
    REDELIVER_UNACKNOWLEDGED_MESSAGES = 20
    PARTITIONED_METADATA = 21
    PARTITIONED_METADATA_RESPONSE = 22
    LOOKUP = 23
    LOOKUP_RESPONSE = 24
    REACHED_END_OF_TOPIC = 27
    SEEK = 28
    GET_LAST_MESSAGE_ID = 29
    GET_LAST_MESSAGE_ID_RESPONSE = 30
    ACTIVE_CONSUMER_CHANGE = 31
    GET_TOPICS_OF_NAMESPACE = 32
    GET_TOPICS_OF_NAMESPACE_RESPONSE = 33
    AUTH_CHALLENGE = 36
    AUTH_RESPONSE = 37
    ACK_RESPONSE = 38
    NEW_TXN = 50
    NEW_TXN_RESPONSE = 51
    ADD_PARTITION_TO_TXN = 52
    ADD_PARTITION_TO_TXN_RESPONSE = 53
    ADD_SUBSCRIPTION_TO_TXN = 54
    ADD_SUBSCRIPTION_TO_TXN_RESPONSE = 55
    END_TXN = 56
    END_TXN_RESPONSE = 57
    TC_CLIENT_CONNECT_REQUEST = 62
    TC_CLIENT_CONNECT_RESPONSE = 63
    TOPIC_MIGRATED = 68


class SubType(enum.IntEnum):
    """Types of subscriptions."""

    Exclusive = 0
    Shared = 1
    Failover = 2
    Key_Shared = 3


class InitialPosition(enum.IntEnum):
    """Where a new subscription starts."""

    Latest = 0
    Earliest = 1


class ProducerAccessMode(enum.IntEnum):
    """Whether other producers of the topic are allowed."""

    Shared = 0
    Exclusive = 1
    WaitForExclusive = 2
    ExclusiveWithFencing = 3


class CompressionType(enum.IntEnum):
    """Compression of payloads."""

    NONE = 0
    LZ4 = 1
    ZLIB = 2
    ZSTD = 3
    SNAPPY = 4


class LookupType(enum.IntEnum):
    """Results of a look-up."""

    Redirect = 0
    Connect = 1
    Failed = 2


class TxnAction(enum.IntEnum):
    """How a transaction ends."""

    COMMIT = 0
    ABORT = 1


_REQUEST = required(1, "request_id", U64)
_REQUEST_2 = required(2, "request_id", U64)
_PRODUCER = required(1, "producer_id", U64)
_CONSUMER = required(1, "consumer_id", U64)
_TXN = (optional(2, "txnid_least_bits", U64, 0), optional(3, "txnid_most_bits", U64, 0))
_TXN_ANSWER = Table(_REQUEST, *_TXN, optional(4, "error", I32), optional(5, "message", TEXT))
_BROKER_3_4 = (optional(3, "assigned_broker_service_url", TEXT), optional(4, "assigned_broker_service_url_tls", TEXT))

KEY_VALUE: Final = Table(required(1, "key", TEXT), required(2, "value", TEXT))
MESSAGE_ID: Final = Table(
    required(1, "ledger_id", U64),
    required(2, "entry_id", U64),
    optional(4, "batch_index", I32, -1),
    repeated(5, "ack_set", I64),
    optional(6, "batch_size", I32),
)
SCHEMA: Final = Table(
    required(1, "name", TEXT),
    required(3, "schema_data", DATA),
    required(4, "type", I32),
    repeated(5, "properties", KEY_VALUE),
)
_FEATURES = Table(optional(1, "supports_auth_refresh", BOOL, False))
_AUTH_DATA = Table(optional(1, "auth_method_name", TEXT), optional(2, "auth_data", DATA))
_SUBSCRIPTION = Table(required(1, "topic", TEXT), required(2, "subscription", TEXT))

#: The fields that this client writes or reads. ``decode_command`` skips other fields, and refuses other commands.
COMMANDS: Final[Mapping[int, Table]] = {
    Command.CONNECT: Table(
        required(1, "client_version", TEXT),
        optional(3, "auth_data", DATA),
        optional(4, "protocol_version", I32, 0),
        optional(5, "auth_method_name", TEXT),
        optional(6, "proxy_to_broker_url", TEXT),
        optional(10, "feature_flags", _FEATURES),
    ),
    Command.CONNECTED: Table(
        required(1, "server_version", TEXT),
        optional(2, "protocol_version", I32, 0),
        optional(3, "max_message_size", I32),
    ),
    Command.SUBSCRIBE: Table(
        required(1, "topic", TEXT),
        required(2, "subscription", TEXT),
        required(3, "sub_type", I32),
        required(4, "consumer_id", U64),
        required(5, "request_id", U64),
        optional(6, "consumer_name", TEXT),
        optional(7, "priority_level", I32),
        optional(8, "durable", BOOL, True),
        optional(9, "start_message_id", MESSAGE_ID),
        repeated(10, "metadata", KEY_VALUE),
        optional(11, "read_compacted", BOOL),
        optional(13, "initial_position", I32, 0),
        optional(14, "replicate_subscription_state", BOOL),
        optional(15, "force_topic_creation", BOOL, True),
        repeated(18, "subscription_properties", KEY_VALUE),
    ),
    Command.PRODUCER: Table(
        required(1, "topic", TEXT),
        required(2, "producer_id", U64),
        required(3, "request_id", U64),
        optional(4, "producer_name", TEXT),
        repeated(6, "metadata", KEY_VALUE),
        optional(7, "schema", SCHEMA),
        optional(8, "epoch", U64, 0),
        optional(9, "user_provided_producer_name", BOOL, True),
        optional(10, "producer_access_mode", I32, 0),
        optional(11, "topic_epoch", U64),
        optional(12, "txn_enabled", BOOL, False),
        optional(13, "initial_subscription_name", TEXT),
    ),
    Command.SEND_ERROR: Table(
        _PRODUCER, required(2, "sequence_id", U64), required(3, "error", I32), required(4, "message", TEXT)
    ),
    Command.FLOW: Table(_CONSUMER, required(2, "message_permits", U32)),
    Command.UNSUBSCRIBE: Table(_CONSUMER, _REQUEST_2),
    Command.SUCCESS: Table(_REQUEST),
    Command.ERROR: Table(_REQUEST, required(2, "error", I32), required(3, "message", TEXT)),
    Command.CLOSE_PRODUCER: Table(_PRODUCER, _REQUEST_2, *_BROKER_3_4),
    Command.CLOSE_CONSUMER: Table(_CONSUMER, _REQUEST_2, *_BROKER_3_4),
    Command.PRODUCER_SUCCESS: Table(
        _REQUEST,
        required(2, "producer_name", TEXT),
        optional(3, "last_sequence_id", I64, -1),
        optional(4, "schema_version", DATA),
        optional(5, "topic_epoch", U64),
        optional(6, "producer_ready", BOOL, True),
    ),
    Command.PING: Table(),
    Command.PONG: Table(),
    Command.REDELIVER_UNACKNOWLEDGED_MESSAGES: Table(_CONSUMER, repeated(2, "message_ids", MESSAGE_ID)),
    Command.PARTITIONED_METADATA: Table(
        required(1, "topic", TEXT), _REQUEST_2, optional(6, "metadata_auto_creation_enabled", BOOL, True)
    ),
    Command.PARTITIONED_METADATA_RESPONSE: Table(
        optional(1, "partitions", U32),
        _REQUEST_2,
        optional(3, "response", I32),
        optional(4, "error", I32),
        optional(5, "message", TEXT),
    ),
    Command.LOOKUP: Table(
        required(1, "topic", TEXT),
        _REQUEST_2,
        optional(3, "authoritative", BOOL, False),
        optional(7, "advertised_listener_name", TEXT),
        repeated(8, "properties", KEY_VALUE),
    ),
    Command.LOOKUP_RESPONSE: Table(
        optional(1, "broker_service_url", TEXT),
        optional(2, "broker_service_url_tls", TEXT),
        optional(3, "response", I32),
        required(4, "request_id", U64),
        optional(5, "authoritative", BOOL, False),
        optional(6, "error", I32),
        optional(7, "message", TEXT),
        optional(8, "proxy_through_service_url", BOOL, False),
    ),
    Command.REACHED_END_OF_TOPIC: Table(_CONSUMER),
    Command.SEEK: Table(
        _CONSUMER, _REQUEST_2, optional(3, "message_id", MESSAGE_ID), optional(4, "message_publish_time", U64)
    ),
    Command.GET_LAST_MESSAGE_ID: Table(_CONSUMER, _REQUEST_2),
    Command.GET_LAST_MESSAGE_ID_RESPONSE: Table(
        required(1, "last_message_id", MESSAGE_ID), _REQUEST_2, optional(3, "consumer_mark_delete_position", MESSAGE_ID)
    ),
    Command.ACTIVE_CONSUMER_CHANGE: Table(_CONSUMER, optional(2, "is_active", BOOL, False)),
    Command.GET_TOPICS_OF_NAMESPACE: Table(_REQUEST, required(2, "namespace", TEXT), optional(3, "mode", I32, 0)),
    Command.GET_TOPICS_OF_NAMESPACE_RESPONSE: Table(_REQUEST, repeated(2, "topics", TEXT)),
    Command.AUTH_CHALLENGE: Table(
        optional(1, "server_version", TEXT),
        optional(2, "challenge", _AUTH_DATA),
        optional(3, "protocol_version", I32, 0),
    ),
    Command.AUTH_RESPONSE: Table(
        optional(1, "client_version", TEXT),
        optional(2, "response", _AUTH_DATA),
        optional(3, "protocol_version", I32, 0),
    ),
    Command.ACK_RESPONSE: Table(
        _CONSUMER, *_TXN, optional(4, "error", I32), optional(5, "message", TEXT), optional(6, "request_id", U64)
    ),
    Command.NEW_TXN: Table(_REQUEST, optional(2, "txn_ttl_seconds", U64, 0), optional(3, "tc_id", U64, 0)),
    Command.NEW_TXN_RESPONSE: _TXN_ANSWER,
    Command.ADD_PARTITION_TO_TXN: Table(_REQUEST, *_TXN, repeated(4, "partitions", TEXT)),
    Command.ADD_PARTITION_TO_TXN_RESPONSE: _TXN_ANSWER,
    Command.ADD_SUBSCRIPTION_TO_TXN: Table(_REQUEST, *_TXN, repeated(4, "subscription", _SUBSCRIPTION)),
    Command.ADD_SUBSCRIPTION_TO_TXN_RESPONSE: _TXN_ANSWER,
    Command.END_TXN: Table(_REQUEST, *_TXN, optional(4, "txn_action", I32)),
    Command.END_TXN_RESPONSE: _TXN_ANSWER,
    Command.TC_CLIENT_CONNECT_REQUEST: Table(_REQUEST, required(2, "tc_id", U64)),
    Command.TC_CLIENT_CONNECT_RESPONSE: Table(_REQUEST, optional(2, "error", I32), optional(3, "message", TEXT)),
    Command.TOPIC_MIGRATED: Table(
        required(1, "resource_id", U64),
        required(2, "resource_type", I32),
        optional(3, "broker_service_url", TEXT),
        optional(4, "broker_service_url_tls", TEXT),
    ),
}

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
}


def _head(command: int) -> bytes:
    """Return the bytes of a ``BaseCommand`` before the length of the command's fields."""
    return b"\x08" + varint(command) + varint(command << 3 | 2)


_HEADS: Final = {int(each): _head(each) for each in Command}


def key_values(properties: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in properties.items()]


def encode_command(command: Command, /, **fields: object) -> bytes:
    """Encode a command as a frame of its own. Raises as ``encode``."""
    wrapped = wrap(command, encode(COMMANDS[command], fields))
    return _SIZES(len(wrapped) + 4, len(wrapped)) + wrapped


def wrap(command: int, body: bytes) -> bytes:
    """Return the ``BaseCommand`` with the encoded fields of a command."""
    return (_HEADS.get(command) or _head(command)) + varint(len(body)) + body


def command_at(data: bytes, start: int, end: int) -> int:
    """Return the number of a command. Raises ProtocolError unless it is the first field, as every broker writes it."""
    tag, value, _ = next(walk(data, start, end), (0, 0, 0))
    if tag != 8:
        raise ProtocolError(f"a command at byte {start} does not begin with its type")
    return value


def body_at(command: int, data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return where the fields of a command start and end, which can be missing. Raises ProtocolError."""
    head = _HEADS.get(command) or _head(command)
    at = start + len(head)
    if at < end and data.startswith(head, start) and data[at] < 128 and at + 1 + data[at] == end:
        return at + 1, end  # nearly all: short, and with nothing else
    found = end, end
    for tag, value, stop in walk(data, start, end):
        if tag == command << 3 | 2:
            found = value, stop
    return found


def decode_command(command: int, data: bytes, start: int, end: int) -> Values:
    """Decode the fields of a command. Raises ProtocolError, also for one that is not in ``COMMANDS``."""
    table = COMMANDS.get(command)
    if table is None:
        raise ProtocolError(f"the broker sends command {command}, which does not belong here")
    return decode(table, data, *body_at(command, data, start, end))
