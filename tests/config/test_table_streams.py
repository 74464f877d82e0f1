"""The option tables of producerConfig and consumerConfig: complete and consistent with their classes."""

import attrs
import pytest

from jmsaio.config import Backoff, ConsumerConfig, DeadLetterPolicy, ProducerConfig
from jmsaio.config.options import Kind, Option, Status
from jmsaio.config.table_streams import ACK_TIMEOUT_BACKOFF, CONSUMER, DEAD_LETTER, NACK_BACKOFF, PRODUCER
from jmsaio.config.values import default

STARLIGHT_PRODUCER = """
batchingEnabled batchingMaxPublishDelayMicros batchingMaxMessages batchingMaxBytes sendTimeoutMs blockIfQueueFull
maxPendingMessages compressionType chunkingEnabled hashingScheme producerName accessMode initialSequenceId
autoUpdatePartitions lazyStartPartitionedProducers initialSubscriptionName encryptionKeys batcherBuilder properties
""".split()  # noqa: SIM905  # a long list of words reads best as text
STARLIGHT_CONSUMER = """
useSchema receiverQueueSize maxTotalReceiverQueueSizeAcrossPartitions ackTimeoutMillis negativeAckRedeliveryDelayMicros
acknowledgementsGroupTimeMicros ackReceiptEnabled batchIndexAckEnabled consumerName priorityLevel readCompacted
patternAutoDiscoveryPeriod regexSubscriptionMode replicateSubscriptionState maxPendingChunkedMessage
autoUpdatePartitions poolMessages cryptoFailureAction retryEnable properties
""".split()  # noqa: SIM905  # a long list of words reads best as text


@pytest.mark.parametrize(("table", "names"), [(PRODUCER, STARLIGHT_PRODUCER), (CONSUMER, STARLIGHT_CONSUMER)])
def test_the_tables_have_every_name_of_starlight(table: tuple[Option, ...], names: list[str]) -> None:
    keys = [option.key for option in table]
    assert set(names) <= set(keys)
    assert len(keys) == len(set(keys))
    assert [option.name for option in table if not option.note] == []


@pytest.mark.parametrize(
    ("table", "kind", "others"),
    [
        (PRODUCER, ProducerConfig, set()),
        (CONSUMER, ConsumerConfig, {"dead_letter", "negative_ack_backoff", "ack_timeout_backoff"}),
        (DEAD_LETTER, DeadLetterPolicy, set()),
        (NACK_BACKOFF, Backoff, set()),
        (ACK_TIMEOUT_BACKOFF, Backoff, set()),
    ],
)
def test_rows_are_the_fields_with_the_same_defaults(table: tuple[Option, ...], kind: type, others: set[str]) -> None:
    rows = {option.field: option for option in table if option.field}
    fields = {field.name: field.default for field in attrs.fields(kind)}
    assert set(rows) == set(fields) - others
    for name, option in rows.items():
        value = fields[name].factory() if isinstance(fields[name], attrs.Factory) else fields[name]
        if value is not attrs.NOTHING:
            assert value == default(option), name


@pytest.mark.parametrize("option", (*PRODUCER, *CONSUMER), ids=lambda o: o.name)
def test_defaults_may_be_written_and_what_is_not_built_may_not(option: Option) -> None:
    base: ProducerConfig | ConsumerConfig = ProducerConfig() if option in PRODUCER else ConsumerConfig()
    if option.default is not None:
        assert base.merge({option.key: option.default}) == base
    if option.status is not Status.BUILT and option.kind in (Kind.FLAG, Kind.INTEGER, Kind.TEXT):
        with pytest.raises(Exception, match=f"option {option.name}.*(not built yet|no meaning)"):
            base.merge({option.key: {Kind.FLAG: not option.default, Kind.INTEGER: 777}.get(option.kind, "x")})
