"""The options of the data source: what each does, and the sentence with which each is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from jmsaio.config import load
from jmsaio.config.declaring import written_names
from jmsaio.errors import ConfigurationError, InvalidDestinationError, InvalidSelectorError, JMSError
from jmsaio.model.destinations import Queue, Topic, resolve
from jmsaio.spark.model.place import Place
from jmsaio.spark.model.schema import Body, columns_of
from jmsaio.spark.options.parse import (
    LATEST,
    SourceOptions,
    Use,
    View,
    check_order,
    parse_bound,
    parse_destination,
    parse_options,
    split_options,
    written_name,
)
from jmsaio.spark.options.secrets import shown_connection
from jmsaio.spark.options.table import EARLIEST, OPTIONS

CANARY = "s3cr3t-canary"
QUEUE = "persistent://public/default/orders"


def read(**options: str) -> SourceOptions:
    return parse_options({"url": "pulsar://host", "queue": "orders", **options}, Use.READ)


def stream(**options: str) -> SourceOptions:
    return parse_options({"url": "pulsar://host", "queue": "orders", **options}, Use.READ_STREAM)


def write(**options: str) -> SourceOptions:
    return parse_options({"url": "pulsar://host", **options}, Use.WRITE)


def test_the_least_that_reads_is_a_broker_and_a_destination() -> None:
    options = read()
    assert options == SourceOptions(
        connection={"brokerServiceUrl": "pulsar://host"},
        destination=Queue("orders"),
        columns=columns_of(Body.TYPED),
    )
    assert options.starting_offsets == EARLIEST
    assert stream().starting_offsets == LATEST
    assert write() == SourceOptions(connection=options.connection, destination=None, columns=())


#: Each of the source's own options with a text, the use that has it, the field that it sets, and the value there.
HAPPY = [
    ("view", "PENDING", Use.READ, "view", View.PENDING),
    ("selector", "JMSPriority > 4", Use.READ, "selector", "JMSPriority > 4"),
    ("selector", "", Use.READ, "selector", None),
    ("body", "raw", Use.READ, "body", Body.RAW),
    ("schema", "AUTO", Use.READ_STREAM, "schema", "auto"),
    ("schema", "latest", Use.READ, "schema", "latest"),
    ("schema", "0", Use.READ, "schema", 0),
    ("schema", "avro", Use.WRITE, "schema", "avro"),
    ("startingOffsets", "earliest", Use.READ_STREAM, "starting_offsets", EARLIEST),
    ("startingOffsets", '{"orders": "12:5:3"}', Use.READ, "starting_offsets", {QUEUE: Place(12, 5, 3)}),
    ("endingOffsets", '{"orders": "12:5"}', Use.READ, "ending_offsets", {QUEUE: Place(12, 5)}),
    ("startingTime", "1000", Use.READ, "starting_time", 1000),
    ("startingOffsets", '{"orders": "1970-01-01T00:00:02Z"}', Use.READ_STREAM, "starting_offsets", {QUEUE: 2000}),
    ("startingOffsets", '{"orders": " LATEST"}', Use.READ, "starting_offsets", {QUEUE: LATEST}),
    ("endingOffsets", '{"orders": "12:5"}', Use.READ_STREAM, "ending_offsets", {QUEUE: Place(12, 5)}),
    ("endingTime", "1970-01-01T00:00:02Z", Use.READ, "ending_time", 2000),
    ("endingTime", "2000", Use.READ_STREAM, "ending_time", 2000),
    ("minPartitions", "4", Use.READ, "min_partitions", 4),
    ("maxEntriesPerPartition", "10", Use.READ_STREAM, "max_entries_per_partition", 10),
    ("maxEntriesPerTrigger", "10", Use.READ_STREAM, "max_entries_per_trigger", 10),
    ("maxBytesPerTrigger", "9999999999", Use.READ_STREAM, "max_bytes_per_trigger", 9_999_999_999),
    ("minEntriesPerTrigger", "5", Use.READ_STREAM, "min_entries_per_trigger", 5),
    ("offsetPollInterval", "250 ms", Use.READ_STREAM, "offset_poll_interval", 0.25),
    ("subscription", "spark", Use.READ_STREAM, "subscription", "spark"),
    ("failOnDataLoss", "FALSE", Use.READ, "fail_on_data_loss", False),
    ("readTimeout", "5", Use.READ, "read_timeout", 5.0),
    ("outageTimeout", "1 h", Use.WRITE, "outage_timeout", 3600.0),
    ("batchRows", "10", Use.READ, "batch_rows", 10),
    ("batchBytes", "1000", Use.READ, "batch_bytes", 1000),
    ("consumerConfig.receiverQueueSize", "7", Use.READ, "receiver_queue", 7),
    ("dedup", "columns", Use.WRITE, "dedup", True),
    ("dedup", "off", Use.WRITE, "dedup", False),
    ("transaction", "true", Use.WRITE, "transaction", True),
    ("topic", "news", Use.WRITE, "destination", Topic("news")),
    ("topic", "['news', 'weather']", Use.READ, "destination", Topic("multi:news,weather")),
    ("queue", "multi:orders", Use.WRITE, "destination", Queue("multi:orders")),
    ("destination", "queue://orders", Use.WRITE, "destination", Queue("orders")),
    ("destination", "topic://news", Use.WRITE, "destination", Topic("news")),
]


@pytest.mark.parametrize(("name", "text", "use", "field", "value"), HAPPY)
def test_each_option_sets_its_field(name: str, text: str, use: Use, field: str, value: object) -> None:
    least = {"url": "pulsar://host"} | ({} if use is Use.WRITE or name == "topic" else {"queue": "orders"})
    assert getattr(parse_options({**least, name: text}, use), field) == value


def test_each_option_of_the_table_is_tried_here() -> None:
    elsewhere = {
        "url",
        "columns",
        "allowInlineSecret",
        "maxTriggerDelay",
        "dataLossFolder",
    }
    assert {row.name for row in OPTIONS} == {case[0] for case in HAPPY if "." not in case[0]} | elsewhere


def test_options_that_need_another_go_with_it() -> None:
    assert stream(minEntriesPerTrigger="5", maxTriggerDelay="2 min").max_trigger_delay == 120.0
    for folder in ("/lost", "s3a://bucket/lost"):
        assert stream(failOnDataLoss="false", dataLossFolder=folder).data_loss_folder == folder


def test_columns_come_in_the_order_that_was_asked_for() -> None:
    options = read(columns="TEXT , jmsPriority,properties")
    assert [column.name for column in options.columns] == ["text", "JMSPriority", "properties"]
    assert [column.name for column in read(columns="payload", body="raw").columns] == ["payload"]
    assert [column.name for column in read(columns="body_json").columns] == ["body_json"]


def test_the_destination_may_say_how_much_is_prefetched() -> None:
    options = read(queue="orders?consumerConfig.receiverQueueSize=3")
    assert options.receiver_queue == 3
    assert options.destination == Queue("orders?consumerConfig.receiverQueueSize=3")


def test_options_of_the_url_are_connection_options() -> None:
    options = read(url="pulsar://host:6651?JMS.systemNamespace=a/b&jms.clientId=x", **{"JMS.clientid": "y"})
    assert options.connection == {
        "brokerServiceUrl": "pulsar://host:6651", "jms.systemNamespace": "a/b", "jms.clientId": "y",
    }  # fmt: skip
    assert options.configuration().system_namespace == "a/b"


def test_short_names_of_offsets_lie_in_the_namespace() -> None:
    options = read(
        url="pulsar://host?jms.systemNamespace=a/b", startingOffsets='{"orders-partition-1": "1:2"}'
    )  # fmt: skip
    assert options.starting_offsets == {"persistent://a/b/orders-partition-1": Place(1, 2)}


def test_the_transport_is_an_option_of_the_connection() -> None:
    assert read(TRANSPORT="wire").connection == {"brokerServiceUrl": "pulsar://host", "transport": "wire"}


def test_what_spark_adds_to_a_sink_is_its_own() -> None:
    assert write(checkpointLocation="/tmp/x", queryName="q") == write()
    with pytest.raises(ConfigurationError, match="unknown option 'checkpointLocation'"):
        read(checkpointLocation="/tmp/x")


READ, STREAM, WRITE = Use.READ, Use.READ_STREAM, Use.WRITE
OFF = {"jms.usePulsarAdmin": "false"}
NEEDS = "needs the broker's REST interface, which jms.usePulsarAdmin=false rules out"
TIME = "is neither milliseconds since the epoch nor ISO 8601, such as 2026-01-31T12:00:00Z"
JSON = 'must be earliest, latest, or JSON such as {"orders-partition-0": "12:5"}'
BATCH_OF_QUEUE = {"url": "pulsar://host", "queue": "orders"}

#: Options beside a broker and a queue, their use, and the sentence that refuses them.
REFUSED = [
    ({"selecter": "x"}, READ, "unknown option 'selecter'; did you mean 'selector'?"),
    ({"adminUrl": "x"}, READ, "unknown option 'adminUrl'"),
    ({"subscripton": "x"}, READ, "unknown option 'subscripton'; did you mean 'subscription'?"),
    ({"receiverQueueSize": "1"}, READ, "did you mean 'consumerConfig.receiverQueueSize'?"),
    ({"includeHeaders": "true"}, READ, "(for options of other sources, see 'jmsaio guide spark-kafka')"),
    ({"path": "orders"}, READ, "option path: a destination has no path; name it by the option queue or topic"),
    ({"owner": "me", "provider": "jms"}, READ, "write CREATE TEMPORARY VIEW name USING jms OPTIONS (...)"),
    ({"brokerServiceUrl": "x"}, READ, "option brokerServiceUrl: the broker is given as url"),
    ({"propertySchema": "n INT"}, READ, "option propertySchema: leave it out, and cast a property where it is used"),
    ({"sharedCursor": "true"}, STREAM, "option sharedCursor: leave it out, and give the stream a subscription of its"),
    ({"moveCursor": "false"}, STREAM, "option moveCursor: leave it out: a stream always moves its subscription"),
    ({"ondecodeerror": "fail"}, READ, 'where("decode_error IS NULL OR raise_error(decode_error)")'),
    ({"URL": "pulsar://host"}, READ, "option url is given twice"),
    ({"url": "memory:"}, READ, "option url = 'memory:': the embedded broker is out of reach for Spark's tasks, which"),
    ({"url": "memory://b?jms.clientId=x"}, READ, "start a broker with `jmsaio broker start` and give its URL"),
    ({"url": "pulser://host"}, READ, "did you mean 'pulsar'?"),
    ({"url": "pulsar://host?clientId=a"}, READ, "unknown option 'clientId'; did you mean 'jms.clientId'?"),
    ({"url": "pulsar://host?selector=a"}, READ, "option selector stands in the url; give it beside the url"),
    ({"queue": "non-persistent://a/b/c"}, READ, "non-persistent://a/b/c is not persistent: the broker keeps nothing"),
    ({"queue": "multi:a,non-persistent://a/b/c"}, READ, "is not persistent"),
    ({"queue": "regex:non-persistent://a/b/c.*"}, READ, "is not persistent"),
    ({"queue": ""}, READ, "option queue = '': must not be empty"),
    ({"queue": "a:"}, READ, "has no subscription after its last ':'"),
    ({"topic": "news"}, READ, "option topic = 'news': is given together with queue; give one of them"),
    ({"queue": "multi:a,b"}, WRITE, "Queue('multi:a,b') stands for several topics; write to one of them instead"),
    ({"queue": "regex:a.*"}, WRITE, "stands for several topics"),
    ({"startingOffsets": "latest"}, READ, "option startingOffsets = 'latest': a batch that starts at the end has no"),
    ({"startingOffsets": "newest"}, READ, f"option startingOffsets = 'newest': {JSON}"),
    ({"startingOffsets": "[]"}, READ, JSON),
    ({"startingOffsets": '{"orders": 5}'}, READ, JSON),
    ({"startingOffsets": '{"orders": [["a", "1:2"]]}'}, READ, JSON),
    ({"startingOffsets": '{"orders": {"a": "1:2"}}'}, READ, JSON),
    ({"startingOffsets": '{"orders": "5"}'}, READ, "option startingOffsets, topic orders: a position is written"),
    ({"startingOffsets": '{"others": "1:2"}'}, READ, "topic persistent://public/default/others is not among those"),
    ({"startingOffsets": f'{{"orders": "1:2", "{QUEUE}": "1:2"}}'}, READ, f"gives two positions for topic {QUEUE}"),
    ({"startingOffsets": '{"": "1:2"}'}, READ, "'' is not the name of a topic"),
    ({"startingOffsets": '{"regex:a": "1:2"}'}, READ, "'regex:a' is not the name of one topic"),
    ({"startingOffsets": '{"orders": "1-2"}'}, READ, f"topic orders: '1-2' {TIME}"),
    ({"endingOffsets": '{"orders": "earliest"}'}, READ, "nothing lies before the earliest message"),
    ({"endingOffsets": "earliest"}, READ, "option endingOffsets = 'earliest': nothing lies before the earliest"),
    (
        {"startingOffsets": '{"orders": "3:1"}', "endingOffsets": '{"orders": "2:9"}'}, READ,
        f"topic {QUEUE} would end at 2:9, before its start at 3:1",
    ),
    ({"startingTime": "5", "endingTime": "4"}, READ, "option endingTime = '4': is before startingTime = '5'"),
    ({"startingTime": "yesterday"}, READ, f"option startingTime = 'yesterday': {TIME}"),
    ({"view": "some"}, READ, "option view = 'some': must be all or pending"),
    ({"columns": "textt"}, READ, "option columns = 'textt': there is no column 'textt'; did you mean 'text'?"),
    ({"columns": "text,Text"}, READ, "option columns = 'text,Text': names text twice"),
    ({"columns": "payload"}, READ, "body=typed leaves out payload; set body=raw or body=both"),
    ({"columns": ""}, READ, "option columns = '': must not be empty"),
    ({"columns": "text,"}, READ, "there is no column ''"),
    ({"body": "text"}, READ, "option body = 'text': must be typed or raw or both"),
    ({"minPartitions": "0"}, READ, "option minPartitions = '0': must be a whole number, at least 1"),
    ({"batchRows": "many"}, READ, "option batchRows = 'many': must be a whole number, at least 1 and at most 1000000"),
    ({"readTimeout": "0"}, READ, "option readTimeout = '0': must be above 0"),
    ({"offsetPollInterval": "500"}, STREAM, "must be at most 60 s; without a unit it is seconds"),
    ({"failOnDataLoss": "yes"}, READ, "option failOnDataLoss = 'yes': must be true or false"),
    ({"schema": "avro"}, READ, "option schema = 'avro': must be auto, latest or the number of a version"),
    ({"schema": "9" * 19}, READ, "must be auto, latest or the number of a version"),
    ({"schema": "auto"}, WRITE, "schema = 'auto': must be avro, json, string, latest or the number of a version"),
    ({"dedup": "on"}, WRITE, "option dedup = 'on': must be off or columns"),
    ({"subscription": "s"}, READ, "option subscription = 's': belongs to readStream, not to read"),
    ({"endingTime": "5"}, WRITE, "option endingTime = '5': belongs to read and readStream, not to write"),
    ({"view": "pending"}, STREAM, "option view = 'pending': belongs to read, not to readStream"),
    ({"dedup": "columns", "transaction": "true"}, WRITE, "is given together with dedup"),
    ({"transaction": "true", "enableTransaction": "false"}, WRITE, "needs enableTransaction, which is false"),
    ({"transaction": "true", "transport": "pulsar-client"}, WRITE, "pulsar-client has no transactions"),
    ({"dedup": "columns"}, READ, "option dedup = 'columns': belongs to write, not to read"),
    ({"columns": "text"}, WRITE, "option columns = 'text': belongs to read and readStream, not to write"),
    ({"minEntriesPerTrigger": "5", "maxEntriesPerTrigger": "4"}, STREAM, "is above maxEntriesPerTrigger = 4"),
    ({"maxTriggerDelay": "5s"}, STREAM, "option maxTriggerDelay = '5s': has no effect without minEntriesPerTrigger"),
    ({"dataLossFolder": "x"}, READ, "option dataLossFolder = 'x': has no effect without failOnDataLoss=false"),
    ({"dataLossFolder": "x", "failOnDataLoss": "false"}, READ, "option dataLossFolder = 'x': must be an absolute path"),
    ({"consumerConfig.receiverQueueSize": "x"}, READ, "option consumerConfig.receiverQueueSize = 'x': is not an int"),
    ({"queue": "orders?consumerConfig.receiverQueueSize=x"}, READ, "consumerConfig.receiverQueueSize = 'x'"),
    ({"jms.systemNamespace": "x"}, READ, "option jms.systemNamespace = 'x': must be tenant/namespace"),
    ({"authParams": "env:TOKEN"}, READ, "option authParams needs authPlugin, such as 'token'"),
    ({"authParams": "file:", "authPlugin": "token"}, READ, "option authParams = 'file:': names nothing"),
    ({"allowInlineSecret": "1"}, READ, "option allowInlineSecret = '1': must be true or false"),
    (OFF, READ, f"a read {NEEDS}: leave that out, and set webServiceUrl"),
    (OFF, STREAM, f"a read {NEEDS}"),
    (OFF | {"schema": "latest"}, WRITE, f"option schema = 'latest': {NEEDS}"),
    (OFF | {"dedup": "columns"}, WRITE, f"option dedup = 'columns': {NEEDS}"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "use", "words"), REFUSED)
def test_each_refusal_names_the_option_and_says_why(options: dict[str, str], use: Use, words: str) -> None:
    with pytest.raises(JMSError) as caught:
        parse_options({**BATCH_OF_QUEUE, **options}, use)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ConfigurationError | InvalidDestinationError)


def test_what_is_missing_is_said() -> None:
    with pytest.raises(ConfigurationError, match=r"^option url is missing: set the broker, such as pulsar://host"):
        parse_options({"queue": "orders"}, Use.READ)
    with pytest.raises(ConfigurationError, match=r"^one of the options queue, topic and destination is needed to read"):
        parse_options({"url": "pulsar://host"}, Use.READ)


def test_only_a_queue_has_pending_messages() -> None:
    with pytest.raises(ConfigurationError, match="view = 'pending': only a queue has pending messages"):
        parse_options({"url": "pulsar://host", "topic": "news", "view": "pending"}, Use.READ)


def test_a_selector_is_refused_in_its_own_words() -> None:
    with pytest.raises(InvalidSelectorError) as caught:
        read(selector="JMSPriority >")
    assert caught.value.column == 14


def test_without_the_rest_interface_the_rest_is_open() -> None:
    assert write(**OFF, dedup="off").dedup is False
    assert write(**OFF, schema="json").schema == "json"


def test_the_schema_of_a_topic_needs_one_topic() -> None:
    with pytest.raises(
        ConfigurationError, match="schema = '3': is that of one topic: set queue or topic, or write avro"
    ):
        write(schema="3")


@settings(max_examples=20)
@given(st.data())
def test_the_case_of_a_key_changes_nothing(data: st.DataObject) -> None:
    everything = {
        "url": "pulsar://host?jms.clientId=x", "queue": "orders", "jms.systemNamespace": "a/b", "tlsKeyFilePath": "k",
        "consumerConfig.receiverQueueSize": "7", "producerConfig.sendTimeoutMs": "500", "authPlugin": "token",
        "consumerConfig.deadLetterPolicy.maxRedeliverCount": "3", "producerConfig.properties.team": "blue",
        "webServiceUrl": "http://host:8080", "authParams": "env:TOKEN", "columns": "text",
        "startingTime": "5", "endingTime": "6", "minPartitions": "4", "connect_timeout": "5", "selector": "Qty = 5",
    }  # fmt: skip
    chosen = {name: everything[name] for name in data.draw(st.sets(st.sampled_from(sorted(everything))))}
    chosen |= {name: everything[name] for name in ("url", "queue", "authPlugin")}
    options = parse_options(chosen, Use.READ)
    for change in (str.lower, str.upper, str.swapcase):
        kept = {name: change(name) if "properties" not in name else name for name in chosen}
        assert parse_options({kept[name]: text for name, text in chosen.items()}, Use.READ) == options
    lowered = parse_options({name.lower(): text for name, text in chosen.items()}, Use.READ)
    assert lowered == options
    assert repr(lowered) == repr(options)


INLINE = {"authPlugin": "token", "authParams": f"token:{CANARY}"}


def test_a_secret_in_an_option_is_refused_unless_it_is_allowed(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(**INLINE)
    assert "write file:NAME or env:NAME, or set allowInlineSecret=true" in str(caught.value)
    assert CANARY not in str(caught.value)
    with pytest.raises(ConfigurationError) as caught:
        read(url=f"pulsar://host?authPlugin=token&authParams=token:{CANARY}")
    assert CANARY not in str(caught.value)
    assert not caplog.records
    options = read(**INLINE, allowInlineSecret="true")
    assert options.configuration().auth_params == f"token:{CANARY}"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert CANARY not in caplog.text


def test_no_secret_shows() -> None:
    options = read(**INLINE, allowInlineSecret="true", **{"consumerConfig.properties.password": CANARY})
    assert CANARY not in repr(options)
    assert CANARY not in repr(options.configuration())
    assert "'authParams': 'env:TOKEN'" in repr(read(authPlugin="token", authParams="env:TOKEN"))


def test_options_travel_to_a_task_whole() -> None:
    options = stream(
        **INLINE, allowInlineSecret="true", startingOffsets='{"orders": "1:2"}', columns="text",
    )  # fmt: skip
    assert pickle.loads(pickle.dumps(options)) == options
    assert pickle.loads(pickle.dumps(write(topic="news"))).destination == Topic("news")


def test_a_secret_is_read_anew_for_each_connection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    options = read(authPlugin="token", authParams="env:SPARK_TOKEN")
    for token in ("one", "two"):
        monkeypatch.setenv("SPARK_TOKEN", token)
        assert options.configuration().auth_params == token
    (tmp_path / "token.txt").write_text("three\n")
    options = read(authPlugin="token", authParams="file:token.txt")
    assert options.configuration([tmp_path]).auth_params == "three"


TEXT = st.one_of(
    st.text(max_size=12), st.sampled_from(["{}", '{"a": null}', "regex:(", "multi:,", "file:%00", "9" * 30])
)


@settings(max_examples=100)
@given(st.sampled_from(list(Use)), st.dictionaries(st.sampled_from([row.name for row in OPTIONS]), TEXT, max_size=3))
def test_any_text_is_read_or_refused_by_an_error_of_ours(use: Use, options: dict[str, str]) -> None:
    try:
        read = parse_options({"url": "pulsar://host", "queue": "orders", **options}, use)
    except JMSError as error:
        assert str(error)
    else:
        assert pickle.loads(pickle.dumps(read)) == read


def test_every_written_name_of_connect_is_found_in_any_case() -> None:
    for name in written_names():
        wanted = None if name == "brokerServiceUrl" else name
        assert written_name(name.lower()) == written_name(name.upper()) == wanted
    assert written_name("producerconfig.properties.team") == "producerConfig.properties.team"
    assert written_name("client_id") is None


def test_the_url_is_parted_from_its_options() -> None:
    assert split_options(" pulsar://a,b:6651?jms.clientId=x%20y ") == ("pulsar://a,b:6651", {"jms.clientId": "x y"})


@pytest.mark.parametrize("url", ["memory:", "memory://name", "MEMORY:"])
def test_a_broker_in_a_process_is_refused_with_what_to_start(url: str) -> None:
    with pytest.raises(ConfigurationError, match="start a broker with `jmsaio broker start` and give its URL"):
        split_options(url)


def test_credentials_in_the_url_are_refused_and_not_shown() -> None:
    with pytest.raises(ConfigurationError) as caught:
        split_options("pulsar://user:canary@host")
    assert "canary" not in str(caught.value)


def test_options_are_checked_as_load_checks_them() -> None:
    options = parse_options({"url": "pulsar://host", "jms.clientId": "x"}, Use.WRITE)
    assert options.connection == {"brokerServiceUrl": "pulsar://host", "jms.clientId": "x"}
    assert options.configuration() == load(options.connection)
    with pytest.raises(ConfigurationError, match="option useKeyStoreTls = 'true': this option is known but not"):
        parse_options({"url": "pulsar://host", "useKeyStoreTls": "true"}, Use.WRITE)


@pytest.mark.parametrize(
    ("name", "text", "hidden"),
    [
        ("authParams", "token:canary", True),
        ("jms.tckPassword", "canary", True),
        ("tlsTrustStorePassword", "canary", True),
        ("consumerConfig.properties.canary", "canary", True),
        ("authParams", "file:canary", False),
        ("jms.clientId", "canary", False),
    ],
)
def test_secrets_are_not_shown_and_references_are(name: str, text: str, hidden: bool) -> None:
    assert shown_connection({name: text}) == repr({name: "***" if hidden else text})


@pytest.mark.parametrize(
    ("option", "text", "destination"),
    [
        ("queue", "queue://a", Queue("queue://a")),
        ("topic", "a:b", Topic("a:b")),
        ("destination", "queue://multi:a,b", Queue("multi:a,b")),
        ("destination", "topic://a", Topic("a")),
    ],
)
def test_a_destination_is_a_queue_or_a_topic(option: str, text: str, destination: Queue | Topic) -> None:
    assert parse_destination({option: text}, Use.READ) == destination


def test_a_destination_says_whether_it_is_a_queue_or_a_topic() -> None:
    with pytest.raises(InvalidDestinationError, match="must be written queue://name or topic://name"):
        parse_destination({"destination": "a"}, Use.WRITE)


def test_a_batch_and_a_stream_start_at_their_own_ends() -> None:
    least = {"url": "pulsar://host", "queue": "a"}
    assert parse_options(least, Use.READ).starting_offsets == "earliest"
    assert parse_options(least, Use.READ_STREAM).starting_offsets == "latest"
    assert parse_options(least, Use.READ_STREAM).ending_offsets == "latest"


NAMESPACE = "public/default"
ORDERS = "persistent://public/default/orders"


@pytest.mark.parametrize(("text", "bound"), [(" Earliest", EARLIEST), ("LATEST", LATEST), ("{}", {})])
def test_an_end_is_a_word_in_any_case(text: str, bound: object) -> None:
    assert parse_bound("startingOffsets", text, resolve(Queue("orders")), NAMESPACE) == bound


def test_a_topic_is_given_by_its_short_or_full_name_or_by_a_partition() -> None:
    text = f'{{"{ORDERS}-partition-0": "1:2", "orders-partition-1": "3:4:5", "orders": "6:7"}}'
    assert parse_bound("startingOffsets", text, resolve(Queue("orders")), NAMESPACE) == {
        f"{ORDERS}-partition-0": Place(1, 2),
        f"{ORDERS}-partition-1": Place(3, 4, 5),
        ORDERS: Place(6, 7),
    }


def test_a_destination_that_is_a_partition_is_one_of_its_own() -> None:
    bound = parse_bound("x", '{"orders-partition-1": "1:2"}', resolve(Queue("orders-partition-1")), NAMESPACE)
    assert bound == {f"{ORDERS}-partition-1": Place(1, 2)}


def test_of_a_pattern_any_topic_may_be_named() -> None:
    bound = parse_bound("x", '{"other": "1:2"}', resolve(Queue("regex:o.*")), NAMESPACE)
    assert bound == {"persistent://public/default/other": Place(1, 2)}


def test_an_end_at_its_start_is_an_empty_range() -> None:
    check_order({ORDERS: Place(1, 2)}, {ORDERS: Place(1, 2)}, "x")
    check_order({ORDERS: Place(9, 9)}, {"another": Place(1, 2)}, "x")
    check_order(EARLIEST, {ORDERS: Place(1, 2)}, "x")
    with pytest.raises(ConfigurationError, match="would end at 1:2, before its start at 1:2:1"):
        check_order({ORDERS: Place(1, 2, 1)}, {ORDERS: Place(1, 2)}, "x")


def test_json_that_is_too_deep_is_refused_as_any_other() -> None:
    with pytest.raises(ConfigurationError, match="must be earliest, latest, or JSON"):
        parse_bound("x", "[" * 100_000, resolve(Queue("orders")), NAMESPACE)


@pytest.mark.parametrize("use", Use)
@pytest.mark.parametrize("name", [*(row.name for row in OPTIONS), None])
@pytest.mark.parametrize("text", ["x" * 5000, "x\ud800" * 5000, "x," * 5000], ids=["long", "surrogates", "list"])
def test_a_refusal_quotes_little(use: Use, name: str | None, text: str) -> None:
    options = {"url": "pulsar://host", "queue": "orders"} if use is not Use.WRITE else {"url": "pulsar://host"}
    try:
        parse_options({**options, text if name is None else name: text}, use)
    except JMSError as error:
        assert str(error).count("x") < 500 and "\ud800" not in str(error)
