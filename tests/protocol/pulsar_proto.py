"""Pulsar's messages for Google's protobuf: the fields of Pulsar 4.0, read off its classes, and not from our tables.

Required fields are optional here, and enumerations are int32, which is the same on the wire.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_MESSAGES = """
AuthData: 1 auth_method_name string, 2 auth_data bytes
BaseCommand: 1 type int32, 2 connect CommandConnect, 3 connected CommandConnected, 4 subscribe CommandSubscribe, 5
    producer CommandProducer, 6 send CommandSend, 7 send_receipt CommandSendReceipt, 8 send_error CommandSendError,
    9 message CommandMessage, 10 ack CommandAck, 11 flow CommandFlow, 12 unsubscribe CommandUnsubscribe, 13 success
    CommandSuccess, 14 error CommandError, 15 close_producer CommandCloseProducer, 16 close_consumer
    CommandCloseConsumer, 17 producer_success CommandProducerSuccess, 18 ping CommandPing, 19 pong CommandPong, 20
    redeliver_unacknowledged_messages CommandRedeliverUnacknowledgedMessages, 21 partition_metadata
    CommandPartitionedTopicMetadata, 22 partition_metadata_response CommandPartitionedTopicMetadataResponse, 23
    lookup_topic CommandLookupTopic, 24 lookup_topic_response CommandLookupTopicResponse, 27 reached_end_of_topic
    CommandReachedEndOfTopic, 28 seek CommandSeek, 29 get_last_message_id CommandGetLastMessageId, 30
    get_last_message_id_response CommandGetLastMessageIdResponse, 31 active_consumer_change
    CommandActiveConsumerChange, 32 get_topics_of_namespace CommandGetTopicsOfNamespace, 33
    get_topics_of_namespace_response CommandGetTopicsOfNamespaceResponse, 34 get_schema CommandGetSchema, 35
    get_schema_response CommandGetSchemaResponse, 36 auth_challenge CommandAuthChallenge, 37 auth_response
    CommandAuthResponse, 38 ack_response CommandAckResponse, 39 get_or_create_schema CommandGetOrCreateSchema, 40
    get_or_create_schema_response CommandGetOrCreateSchemaResponse, 50 new_txn CommandNewTxn, 51 new_txn_response
    CommandNewTxnResponse, 52 add_partition_to_txn CommandAddPartitionToTxn, 53 add_partition_to_txn_response
    CommandAddPartitionToTxnResponse, 54 add_subscription_to_txn CommandAddSubscriptionToTxn, 55
    add_subscription_to_txn_response CommandAddSubscriptionToTxnResponse, 56 end_txn CommandEndTxn, 57
    end_txn_response CommandEndTxnResponse, 62 tc_client_connect_request CommandTcClientConnectRequest, 63
    tc_client_connect_response CommandTcClientConnectResponse, 64 watch_topic_list CommandWatchTopicList, 65
    watch_topic_list_success CommandWatchTopicListSuccess, 66 watch_topic_update CommandWatchTopicUpdate, 67
    watch_topic_list_close CommandWatchTopicListClose, 68 topic_migrated CommandTopicMigrated
BrokerEntryMetadata: 1 broker_timestamp uint64, 2 index uint64
CommandAck: 1 consumer_id uint64, 2 ack_type int32, 3 message_id MessageIdData*, 4 validation_error int32, 5
    properties KeyLongValue*, 6 txnid_least_bits uint64, 7 txnid_most_bits uint64, 8 request_id uint64
CommandAckResponse: 1 consumer_id uint64, 2 txnid_least_bits uint64, 3 txnid_most_bits uint64, 4 error int32, 5
    message string, 6 request_id uint64
CommandActiveConsumerChange: 1 consumer_id uint64, 2 is_active bool
CommandAddPartitionToTxn: 1 request_id uint64, 2 txnid_least_bits uint64, 3 txnid_most_bits uint64, 4 partitions
    string*
CommandAddPartitionToTxnResponse: 1 request_id uint64, 2 txnid_least_bits uint64, 3 txnid_most_bits uint64, 4 error
    int32, 5 message string
CommandAddSubscriptionToTxn: 1 request_id uint64, 2 txnid_least_bits uint64, 3 txnid_most_bits uint64, 4
    subscription Subscription*
CommandAddSubscriptionToTxnResponse: 1 request_id uint64, 2 txnid_least_bits uint64, 3 txnid_most_bits uint64, 4
    error int32, 5 message string
CommandAuthChallenge: 1 server_version string, 2 challenge AuthData, 3 protocol_version int32
CommandAuthResponse: 1 client_version string, 2 response AuthData, 3 protocol_version int32
CommandCloseConsumer: 1 consumer_id uint64, 2 request_id uint64, 3 assigned_broker_service_url string, 4
    assigned_broker_service_url_tls string
CommandCloseProducer: 1 producer_id uint64, 2 request_id uint64, 3 assigned_broker_service_url string, 4
    assigned_broker_service_url_tls string
CommandConnect: 1 client_version string, 2 auth_method int32, 3 auth_data bytes, 4 protocol_version int32, 5
    auth_method_name string, 6 proxy_to_broker_url string, 7 original_principal string, 8 original_auth_data string,
    9 original_auth_method string, 10 feature_flags FeatureFlags, 11 proxy_version string
CommandConnected: 1 server_version string, 2 protocol_version int32, 3 max_message_size int32, 4 feature_flags
    FeatureFlags
CommandEndTxn: 1 request_id uint64, 2 txnid_least_bits uint64, 3 txnid_most_bits uint64, 4 txn_action int32
CommandEndTxnResponse: 1 request_id uint64, 2 txnid_least_bits uint64, 3 txnid_most_bits uint64, 4 error int32, 5
    message string
CommandError: 1 request_id uint64, 2 error int32, 3 message string
CommandFlow: 1 consumer_id uint64, 2 message_permits uint32
CommandGetLastMessageId: 1 consumer_id uint64, 2 request_id uint64
CommandGetLastMessageIdResponse: 1 last_message_id MessageIdData, 2 request_id uint64, 3
    consumer_mark_delete_position MessageIdData
CommandGetOrCreateSchema: 1 request_id uint64, 2 topic string, 3 schema Schema
CommandGetOrCreateSchemaResponse: 1 request_id uint64, 2 error_code int32, 3 error_message string, 4 schema_version
    bytes
CommandGetSchema: 1 request_id uint64, 2 topic string, 3 schema_version bytes
CommandGetSchemaResponse: 1 request_id uint64, 2 error_code int32, 3 error_message string, 4 schema Schema, 5
    schema_version bytes
CommandGetTopicsOfNamespace: 1 request_id uint64, 2 namespace string, 3 mode int32, 4 topics_pattern string, 5
    topics_hash string
CommandGetTopicsOfNamespaceResponse: 1 request_id uint64, 2 topics string*, 3 filtered bool, 4 topics_hash string, 5
    changed bool
CommandLookupTopic: 1 topic string, 2 request_id uint64, 3 authoritative bool, 4 original_principal string, 5
    original_auth_data string, 6 original_auth_method string, 7 advertised_listener_name string, 8 properties
    KeyValue*
CommandLookupTopicResponse: 1 broker_service_url string, 2 broker_service_url_tls string, 3 response int32, 4
    request_id uint64, 5 authoritative bool, 6 error int32, 7 message string, 8 proxy_through_service_url bool
CommandMessage: 1 consumer_id uint64, 2 message_id MessageIdData, 3 redelivery_count uint32, 4 ack_set int64*, 5
    consumer_epoch uint64
CommandNewTxn: 1 request_id uint64, 2 txn_ttl_seconds uint64, 3 tc_id uint64
CommandNewTxnResponse: 1 request_id uint64, 2 txnid_least_bits uint64, 3 txnid_most_bits uint64, 4 error int32, 5
    message string
CommandPartitionedTopicMetadata: 1 topic string, 2 request_id uint64, 3 original_principal string, 4
    original_auth_data string, 5 original_auth_method string, 6 metadata_auto_creation_enabled bool
CommandPartitionedTopicMetadataResponse: 1 partitions uint32, 2 request_id uint64, 3 response int32, 4 error int32,
    5 message string
CommandPing:
CommandPong:
CommandProducer: 1 topic string, 2 producer_id uint64, 3 request_id uint64, 4 producer_name string, 5 encrypted
    bool, 6 metadata KeyValue*, 7 schema Schema, 8 epoch uint64, 9 user_provided_producer_name bool, 10
    producer_access_mode int32, 11 topic_epoch uint64, 12 txn_enabled bool, 13 initial_subscription_name string
CommandProducerSuccess: 1 request_id uint64, 2 producer_name string, 3 last_sequence_id int64, 4 schema_version
    bytes, 5 topic_epoch uint64, 6 producer_ready bool
CommandReachedEndOfTopic: 1 consumer_id uint64
CommandRedeliverUnacknowledgedMessages: 1 consumer_id uint64, 2 message_ids MessageIdData*, 3 consumer_epoch uint64
CommandSeek: 1 consumer_id uint64, 2 request_id uint64, 3 message_id MessageIdData, 4 message_publish_time uint64
CommandSend: 1 producer_id uint64, 2 sequence_id uint64, 3 num_messages int32, 4 txnid_least_bits uint64, 5
    txnid_most_bits uint64, 6 highest_sequence_id uint64, 7 is_chunk bool, 8 marker bool, 9 message_id MessageIdData
CommandSendError: 1 producer_id uint64, 2 sequence_id uint64, 3 error int32, 4 message string
CommandSendReceipt: 1 producer_id uint64, 2 sequence_id uint64, 3 message_id MessageIdData, 4 highest_sequence_id
    uint64
CommandSubscribe: 1 topic string, 2 subscription string, 3 sub_type int32, 4 consumer_id uint64, 5 request_id
    uint64, 6 consumer_name string, 7 priority_level int32, 8 durable bool, 9 start_message_id MessageIdData, 10
    metadata KeyValue*, 11 read_compacted bool, 12 schema Schema, 13 initial_position int32, 14
    replicate_subscription_state bool, 15 force_topic_creation bool, 16 start_message_rollback_duration_sec uint64,
    17 key_shared_meta KeySharedMeta, 18 subscription_properties KeyValue*, 19 consumer_epoch uint64
CommandSuccess: 1 request_id uint64, 2 schema Schema
CommandTcClientConnectRequest: 1 request_id uint64, 2 tc_id uint64
CommandTcClientConnectResponse: 1 request_id uint64, 2 error int32, 3 message string
CommandTopicMigrated: 1 resource_id uint64, 2 resource_type int32, 3 broker_service_url string, 4
    broker_service_url_tls string
CommandUnsubscribe: 1 consumer_id uint64, 2 request_id uint64, 3 force bool
CommandWatchTopicList: 1 request_id uint64, 2 watcher_id uint64, 3 namespace string, 4 topics_pattern string, 5
    topics_hash string
CommandWatchTopicListClose: 1 request_id uint64, 2 watcher_id uint64
CommandWatchTopicListSuccess: 1 request_id uint64, 2 watcher_id uint64, 3 topic string*, 4 topics_hash string
CommandWatchTopicUpdate: 1 watcher_id uint64, 2 new_topics string*, 3 deleted_topics string*, 4 topics_hash string
EncryptionKeys: 1 key string, 2 value bytes, 3 metadata KeyValue*
FeatureFlags: 1 supports_auth_refresh bool, 2 supports_broker_entry_metadata bool, 3 supports_partial_producer bool,
    4 supports_topic_watchers bool, 5 supports_get_partitioned_metadata_without_auto_creation bool, 6
    supports_repl_dedup_by_lid_and_eid bool
IntRange: 1 start int32, 2 end int32
KeyLongValue: 1 key string, 2 value uint64
KeySharedMeta: 1 key_shared_mode int32, 3 hash_ranges IntRange*, 4 allow_out_of_order_delivery bool
KeyValue: 1 key string, 2 value string
MessageIdData: 1 ledger_id uint64, 2 entry_id uint64, 3 partition int32, 4 batch_index int32, 5 ack_set int64*, 6
    batch_size int32, 7 first_chunk_message_id MessageIdData
MessageMetadata: 1 producer_name string, 2 sequence_id uint64, 3 publish_time uint64, 4 properties KeyValue*, 5
    replicated_from string, 6 partition_key string, 7 replicate_to string*, 8 compression int32, 9 uncompressed_size
    uint32, 11 num_messages_in_batch int32, 12 event_time uint64, 13 encryption_keys EncryptionKeys*, 14
    encryption_algo string, 15 encryption_param bytes, 16 schema_version bytes, 17 partition_key_b64_encoded bool,
    18 ordering_key bytes, 19 deliver_at_time int64, 20 marker_type int32, 22 txnid_least_bits uint64, 23
    txnid_most_bits uint64, 24 highest_sequence_id uint64, 25 null_value bool, 26 uuid string, 27
    num_chunks_from_msg int32, 28 total_chunk_msg_size int32, 29 chunk_id int32, 30 null_partition_key bool
Schema: 1 name string, 3 schema_data bytes, 4 type int32, 5 properties KeyValue*
SingleMessageMetadata: 1 properties KeyValue*, 2 partition_key string, 3 payload_size int32, 4 compacted_out bool, 5
    event_time uint64, 6 partition_key_b64_encoded bool, 7 ordering_key bytes, 8 sequence_id uint64, 9 null_value
    bool, 10 null_partition_key bool
Subscription: 1 topic string, 2 subscription string
"""
_TYPES = {
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    "bool": descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    "uint32": descriptor_pb2.FieldDescriptorProto.TYPE_UINT32,
    "uint64": descriptor_pb2.FieldDescriptorProto.TYPE_UINT64,
}


def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="pulsar.proto", package="pulsar", syntax="proto2")
    for line in _MESSAGES.replace("\n    ", " ").strip().splitlines():
        name, _, fields = line.partition(":")
        message = file.message_type.add(name=name)
        for row in filter(None, fields.strip().split(", ")):
            number, field, kind = row.split()
            made = message.field.add(name=field, number=int(number))
            made.label = made.LABEL_REPEATED if kind.endswith("*") else made.LABEL_OPTIONAL
            kind = kind.rstrip("*")
            if kind in _TYPES:
                made.type = _TYPES[kind]
            else:
                made.type_name = f".pulsar.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


_POOL = _pool()


def proto(name: str) -> Any:
    """Return protobuf's class of a message."""
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"pulsar.{name}"))


def inner(command: int) -> str:
    """Return the name of the field of ``BaseCommand`` with this number."""
    field: str = proto("BaseCommand").DESCRIPTOR.fields_by_number[command].name
    return field


def fill(message: Any, values: dict[str, Any]) -> Any:
    """Set the fields of a message of protobuf, and return it."""
    message.SetInParent()
    for name, value in values.items():
        if isinstance(value, dict):
            fill(getattr(message, name), value)
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, dict):
                    fill(getattr(message, name).add(), each)
                else:
                    getattr(message, name).append(each)
        else:
            setattr(message, name, value)
    return message
