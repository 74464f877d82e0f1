"""``load``: one configuration from a URL, a map, a file, the environment and keyword options."""

import json
import pathlib
import re
import traceback
from datetime import timedelta
from typing import Any

import pytest

from jmsaio.config import Backoff, Configuration, ConsumerConfig, DeadLetterPolicy, ProducerConfig, load
from jmsaio.config.loading import KEYWORDS, as_map, find_keyword, read_file
from jmsaio.config.options import Section
from jmsaio.errors import ConfigurationError


def test_nothing_given_is_the_embedded_broker_as_a_fallback() -> None:
    config = load()
    assert (config.scheme, config.broker_name, config.service_url, config.fallback) == ("memory", "", "memory:", True)
    assert config.web_service_url == ""
    assert config == Configuration(fallback=True)


def test_environment_names_the_broker_when_nothing_else_does() -> None:
    environ = {"JMSAIO_URL": "pulsar://broker?jms.clientId=from-environ&jms.queueSubscriptionName=q"}
    config = load(environ=environ)
    assert (config.service_url, config.client_id, config.fallback) == ("pulsar://broker:6650", "from-environ", False)
    assert load({"jms.clientId": "from-map"}, environ=environ).client_id == "from-map"
    assert load({"jms.clientId": "from-map"}, environ=environ).queue_subscription_name == "q"
    assert load("memory:", environ=environ).scheme == "memory"
    assert load(environ={"JMSAIO_URL": ""}).fallback is True


@pytest.mark.parametrize(("text", "limit"), [("12", 12), ("-1", -1), ("many", 0), ("", 0), ("1.5", 0)])
def test_browser_limit_comes_from_the_environment(text: str, limit: int) -> None:
    environ = {"JMSAIO_QUEUE_BROWSER_READ_MAX": text}
    assert load("memory:", environ=environ).queue_browser_read_max == limit
    assert load("memory:", environ=environ, queue_browser_read_max=3).queue_browser_read_max == 3
    assert load("memory:?queue_browser_read_max=4", environ=environ).queue_browser_read_max == 4


@pytest.mark.parametrize("text", ["many", "1.5", "5_0", "٣", "9" * 5000, "--1"])
def test_a_browser_limit_that_is_not_an_integer_is_reported(text: str) -> None:
    environ = {"JMSAIO_QUEUE_BROWSER_READ_MAX": text}
    config = load("memory:", environ=environ)
    assert config.queue_browser_read_max == 0
    assert ["JMSAIO_QUEUE_BROWSER_READ_MAX" in line and "counts as 0" in line for line in config.ignored] == [True]
    assert len(config.ignored[0]) < 300
    assert load("memory:", environ=environ, queue_browser_read_max=3).ignored == ()  # it is not looked at


@pytest.mark.parametrize("text", ["", " ", "7", "-3", " 8 "])
def test_a_browser_limit_that_is_an_integer_is_not(text: str) -> None:
    assert load("memory:", environ={"JMSAIO_QUEUE_BROWSER_READ_MAX": text}).ignored == ()


def test_url_with_options_of_every_kind() -> None:
    config = load(
        "pulsar+ssl://one,two:7000?jms.clientId=bill%20ing+x&jms.usePulsarAdmin=FALSE&close_timeout=2.5"
        "&operationTimeoutMs=1500&producerConfig.batchingMaxPublishDelayMicros=250&consumerConfig.receiverQueueSize=7"
        "&consumerConfig.deadLetterPolicy.maxRedeliverCount=3&numIoThreads=2&producerConfig.properties.team.name=a"
    )
    assert config.service_url == "pulsar+ssl://one:6651,two:7000"
    assert config.web_service_url == "https://one:8443"
    assert (config.scheme, config.client_id, config.use_pulsar_admin) == ("pulsar+ssl", "bill ing x", False)
    assert (config.close_timeout, config.operation_timeout) == (2.5, 1.5)
    assert config.producer.batching_max_publish_delay == 0.00025
    assert config.producer.properties == {"team.name": "a"}
    assert config.consumer.receiver_queue_size == 7
    assert config.consumer.dead_letter == DeadLetterPolicy(max_redeliver_count=3)
    assert config.io_threads == 2


@pytest.mark.parametrize(
    "written", [{"lookupProperties": {"a.b": "c"}}, {"lookupProperties.a.b": "c"}, {"lookup_properties": {"a.b": "c"}}]
)
def test_a_map_of_the_connection_nested_or_dotted(written: dict[str, Any]) -> None:
    assert load({"brokerServiceUrl": "pulsar://h", **written}).lookup_properties == {"a.b": "c"}


def test_a_starlight_map_nested_or_dotted() -> None:
    flat = load({"brokerServiceUrl": "pulsar://b:1", "webServiceUrl": "http://w:2/", "jms.clientId": "x",
                 "consumerConfig": {"ackTimeoutMillis": 12000}, "producerConfig.producerName": "p"})  # fmt: skip
    deep = load({"brokerServiceUrl": "pulsar://b:1", "webServiceUrl": "http://w:2", "jms": {"clientId": "x"},
                 "consumerConfig.ackTimeoutMillis": "12000", "producerConfig": {"producerName": "p"}})  # fmt: skip
    assert flat == deep
    assert (flat.consumer.ack_timeout, flat.producer.producer_name, flat.web_service_url) == (12.0, "p", "http://w:2")


def test_web_service_url_alone_looks_the_broker_up_over_http() -> None:
    config = load({"webServiceUrl": "http://w:8080"}, environ={"JMSAIO_URL": "memory:"})
    assert (config.scheme, config.service_url, config.web_service_url) == ("pulsar", "http://w:8080", "http://w:8080")


def test_json_and_toml_files_give_what_a_url_gives(tmp_path: pathlib.Path) -> None:
    as_json = tmp_path / "starlight.json"
    as_json.write_text(json.dumps({"brokerServiceUrl": "memory://a", "jms.clientId": "x", "authParams": None}))
    as_toml = tmp_path / "starlight.toml"
    as_toml.write_text('brokerServiceUrl = "memory://a"\n[jms]\nclientId = "x"\n')
    assert load(as_json) == load(str(as_json)) == load(as_toml) == load("memory://a", client_id="x")


def test_keywords_win_and_take_seconds_or_timedelta() -> None:
    config = load("memory:?jms.clientId=a&close_timeout=1", client_id="b", close_timeout=timedelta(milliseconds=250))
    assert (config.client_id, config.close_timeout) == ("b", 0.25)
    assert load(service_url="memory://x?jms.clientId=c").client_id == "c"
    both = load("memory:?producerConfig.sendTimeoutMs=5", producer={"batching_enabled": False})
    assert both.producer == ProducerConfig(send_timeout=0.005, batching_enabled=False)
    assert load(consumer=ConsumerConfig(receiver_queue_size=3)).consumer.receiver_queue_size == 3
    assert load({"numIoThreads": 3}).io_threads == load(io_threads=3).io_threads == 3


@pytest.mark.parametrize(
    ("config", "key", "words"),
    [
        ("pulsar://h?jms.clientID=x", "jms.clientID", "did you mean 'jms.clientId'?"),
        ("pulsar://h?jms.queueSubscriptonName=x", "jms.queueSubscriptonName", "'jms.queueSubscriptionName'"),
        ("pulsar://h?sendTimeoutMs=1", "sendTimeoutMs", "'producerConfig.sendTimeoutMs'"),
        ({"consumerConfig": {"recieverQueueSize": 1}}, "consumerConfig.recieverQueueSize", "receiverQueueSize"),
        ({"consumerConfig": {"deadLetterPolicy": {"maxRedeliver": 1}}},
         "consumerConfig.deadLetterPolicy.maxRedeliver", "maxRedeliverCount"),
        ({"enableTransaction": True, "jms.emulateTransactions": "true"}, "enableTransaction",
         "jms.emulateTransactions = True is set as well; set one of them, as in Java"),
        ("pulsar://h?enableTransaction=yes", "enableTransaction", "must be true or false"),
        ({"useKeyStoreTls": "true"}, "useKeyStoreTls", "PEM"),
        ("http://h?useTls=true", "useTls", "write https://"),
        ({"webServiceUrl": "http://h", "useTls": True}, "useTls", "write https://"),
        ({"useTls": "yes", "brokerServiceUrl": "pulsar://h"}, "useTls", "must be true or false"),
        ({"tlsProtocols": ["TLSv1.3"]}, "tlsProtocols", "TLS 1.2 and 1.3"),
        ({"tlsCiphers": {"a": "b"}}, "tlsCiphers.a", "unknown option"),
        ({"tlsCiphers": 5}, "tlsCiphers", "not supported"),
        ({"authParamMap": {"token": "x"}}, "authParamMap", "use authPlugin and authParams"),
        ({"lookupProperties": "x", "lookupPropertie": "x"}, "lookupProperties", "group of options"),
        ({"sslFactoryPlugin": "com.example.Ssl"}, "sslFactoryPlugin", "Java class"),
        ({"jms.clientId": "a", "client_id": "b"}, "jms.clientId", "given twice"),
        ({"producerConfig": {}, "producer": {"batching_enabled": False}}, "producerConfig", "given twice"),
        ({"consumerConfig": 5}, "consumerConfig", "group of options"),
        ({"consumer": False}, "consumer", "must be a map of options, not bool"),
        ({"dead_letter": 0}, "dead_letter", "needs a DeadLetterPolicy, a map or None"),
        ({"properties": {"a": "b"}}, "properties", "more than one section"),
        ({"operationTimeoutMs": "soon"}, "operationTimeoutMs", "'soon'"),
        ({"operationTimeoutMs": -1}, "operationTimeoutMs", "negative"),
        ({"operationTimeoutMs": True}, "operationTimeoutMs", "number"),
        ({"close_timeout": 10**9}, "close_timeout", "seconds, not milliseconds"),
        ({"jms.maxNumOfProducers": 0}, "jms.maxNumOfProducers", "at least 1"),
        ({"jms.maxNumOfProducers": "1.5"}, "jms.maxNumOfProducers", "integer"),
        ({"jms.topicSharedSubscriptionType": "Exclusive"}, "jms.topicSharedSubscriptionType", "Key_Shared"),
        ({"jms.systemNamespace": "public"}, "jms.systemNamespace", "tenant/namespace"),
        ({"jms.clientId": ["a"]}, "jms.clientId", "list"),
        ({"producerConfig": {"chunkingEnabled": True}}, "producerConfig.chunkingEnabled", "batchingEnabled"),
        ({"producerConfig": {"hashingScheme": "Murmur3_32Hash"}}, "producerConfig.hashingScheme", "JavaStringHash"),
        ({"consumerConfig": {"deadLetterPolicy": {}}}, "consumerConfig.deadLetterPolicy.maxRedeliverCount", "be set"),
        ({"jms.useCredentialsFromCreateConnection": True}, "jms.useCredentialsFromCreateConnection", "authPlugin"),
        ({"webServiceUrl": "localhost:8080"}, "webServiceUrl", "http://"),
        ({1: 2}, None, "option names are text"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_option_and_helps(config: object, key: str | None, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(config)  # type: ignore[arg-type]  # wrong input on purpose
    assert caught.value.key == key
    assert words in str(caught.value)


def test_keyword_names_are_the_fields_names() -> None:
    written: dict[str, Any] = {"jms.clientId": "x"}
    with pytest.raises(ConfigurationError, match="did you mean 'client_id'"):
        load("memory:", clientId="x")  # type: ignore[call-arg]  # wrong on purpose
    with pytest.raises(ConfigurationError, match="unknown option 'broker_name'"):
        load(broker_name="x")  # type: ignore[call-arg]  # wrong on purpose
    with pytest.raises(ConfigurationError, match=r"unknown option 'jms\.clientId'; did you mean 'client_id'"):
        load("memory:", **written)
    with pytest.raises(ConfigurationError, match="given twice"):
        load("memory:", service_url="memory:")
    with pytest.raises(ConfigurationError, match="not int"):
        load(5)  # type: ignore[arg-type]  # wrong input on purpose


def test_an_option_that_is_not_built_is_accepted_with_the_value_that_holds_anyway() -> None:
    config = {"useKeyStoreTls": "false", "jms.enableJMSPriority": False, "jms.priorityMapping": "linear"}
    assert load(config) == load()


SECRETS = {
    "authPlugin": "token", "authParams": "s3cret", "jms.tckUsername": "u", "jms.tckPassword": "s3cret",
}  # fmt: skip


@pytest.mark.parametrize("wrong", [{}, {"jms.clientID": "x"}, {"tck_password": "other s3cret"}, {"authPlugin": None},
                                   {"tlsTrustStorePassword": "s3cret"}, {"socks5ProxyPassword": "s3cret"},
                                   {"authParams": ["s3cret"]}, {"authParamMap": "s3cret"},
                                   {"authParamMap": {"token": "s3cret"}}])  # fmt: skip
def test_secrets_are_never_shown(wrong: dict[str, object]) -> None:
    try:
        config = load(SECRETS | wrong)
        shown = f"{config!r} {config}"
        assert "***" in shown
    except ConfigurationError as error:
        shown = f"{error!r} {error.reason} {error.__cause__!r} {error.__context__!r}"
    assert "s3cret" not in shown


def test_a_broken_url_or_file_shows_no_secret(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"authParams": "s3cret"')
    for broken in ("pulsar://user:s3cret@host", "nosuch://h?authParams=s3cret", path, "x?authParams=s3cret"):
        with pytest.raises(ConfigurationError) as caught:
            load(broken)
        assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_the_value_of_one_configuration_can_build_another() -> None:
    config = load("memory:", consumer={"ack_timeout_backoff": Backoff(min_delay=1, max_delay=2)})
    assert config.consumer.ack_timeout_backoff == Backoff(min_delay=1, max_delay=2)
    assert hash(config.service_url) == hash("memory:")


@pytest.mark.parametrize(
    "text",
    ["user:PW@h:1", "pulsar://h:1/token:PW", "h:1/token:PW", "pulsar://h:PW", "pulsr://h:1/PW", "memory:PW",
     "memory://a/PW", "pulsar:h/PW", "pulsar://h?token:PW", "PW@h"],
)  # fmt: skip
def test_what_may_be_a_secret_is_in_no_error(text: str) -> None:
    """A URL that is not understood is not repeated where a secret may stand in it."""
    with pytest.raises(ConfigurationError) as caught:
        load(text)
    assert "PW" not in str(caught.value)


@pytest.mark.parametrize("name", ["receive_buffer", "send_window_messages", "listener_concurrency", "memory_limit"])
def test_a_size_above_its_upper_bound_is_refused(name: str) -> None:
    """Sizes and numbers have an upper bound."""
    huge: dict[str, Any] = {name: 10**30}
    with pytest.raises(ConfigurationError, match=f"{name}: must be at most"):
        load("memory:", **huge)


@pytest.mark.parametrize(
    "config",
    [
        "pulsar+ssl://h?useTls=true",
        "pulsar+ssl://h?useTls=false",
        "memory:?useTls=true",
        "pulsar://h?useTls=false",
        {"webServiceUrl": "https://h", "useTls": True},
        {"brokerServiceUrl": "pulsar+ssl://h", "webServiceUrl": "http://h", "useTls": True},
    ],
)
def test_use_tls_is_accepted_where_it_says_what_happens_anyway(config: Any) -> None:
    assert load(config).without_effect == ()


@pytest.mark.parametrize(
    "config", ["pulsar://h?useTls=true", {"brokerServiceUrl": "pulsar://h:6650", "useTls": "true"}]
)
def test_use_tls_wins_over_the_scheme_as_in_java(config: Any) -> None:
    assert load(config) == load("pulsar+ssl://h:6650")
    assert load("pulsar://a:1,b:2?useTls=true").service_url == "pulsar+ssl://a:1,b:2"
    named = load({"webServiceUrl": "http://h:80", "brokerServiceUrl": "pulsar://h", "useTls": True})
    assert (named.scheme, named.web_service_url) == ("pulsar+ssl", "http://h:80")


@pytest.mark.parametrize(
    "config",
    [
        {"tlsProtocols": ["TLSv1.3", "TLSv1.2"], "tlsCiphers": [], "dnsServerAddresses": [], "service_url": "memory:"},
        "memory:?tlsProtocols=TLSv1.3,TLSv1.2&tlsCiphers=",
        "memory:?tlsProtocols=&sslFactoryPlugin=org.apache.pulsar.common.util.DefaultPulsarSslFactory",
        {"producer": {"encryptionKeys": []}, "consumer": {"topicConfigurations": []}, "brokerServiceUrl": "memory:"},
        {"authParamMap": {}, "useKeyStoreTls": "false", "brokerServiceUrl": "memory:"},
    ],
)
def test_lists_and_names_that_ask_for_what_happens_anyway_are_accepted(config: Any) -> None:
    assert load(config) == load("memory:")


def test_a_map_of_a_java_service_loads() -> None:
    config = load(
        {
            "brokerServiceUrl": "pulsar+ssl://h:6651",
            "webServiceUrl": "https://h:8443",
            "useTls": True,
            "jms.sessionListenersThreads": 8,
            "description": "billing",
            "numIoThreads": 4,
            "statsIntervalSeconds": 60,
            "keepAliveIntervalSeconds": "20",
            "producerConfig": {"maxPendingMessages": 1000, "blockIfQueueFull": True, "sendTimeoutMs": 5000},
            "consumerConfig": {"receiverQueueSize": 10, "acknowledgementsGroupTimeMicros": 0, "subscriptionName": "s"},
        }
    )
    assert config.producer.send_timeout == 5 and config.consumer.receiver_queue_size == 10
    assert set(config.without_effect) == {
        "jms.sessionListenersThreads", "description", "keepAliveIntervalSeconds", "producerConfig.maxPendingMessages",
        "consumerConfig.acknowledgementsGroupTimeMicros", "consumerConfig.subscriptionName",
    }  # fmt: skip


def test_a_keyword_of_producer_or_consumer_needs_no_map() -> None:
    config = load("memory:", send_timeout=10, ack_timeout=12, io_threads=2, dead_letter={"max_redeliver_count": 3})
    assert config.producer == ProducerConfig(send_timeout=10)
    assert config.consumer == ConsumerConfig(ack_timeout=12, dead_letter=DeadLetterPolicy(max_redeliver_count=3))
    assert config.io_threads == 2
    assert load("memory:", ack_timeout=None, negative_ack_backoff=Backoff(min_delay=1)).consumer == ConsumerConfig(
        negative_ack_backoff=Backoff(min_delay=1)
    )


@pytest.mark.parametrize(
    "config",
    [
        "memory:?send_timeout=10&dead_letter.max_redeliver_count=3",
        {"brokerServiceUrl": "memory:", "send_timeout": 10, "dead_letter": {"maxRedeliverCount": 3}},
        {"brokerServiceUrl": "memory:", "producer": {"send_timeout": "10"}, "dead_letter.max_redeliver_count": "3"},
        "memory:?producer.send_timeout=10&consumer.dead_letter.max_redeliver_count=3",
        {"brokerServiceUrl": "memory:", "send_timeout": 10, "consumer": {"dead_letter.max_redeliver_count": 3}},
    ],
)
def test_it_works_in_a_url_and_in_a_map_with_durations_in_seconds(config: Any) -> None:
    assert load(config) == load("memory:", send_timeout=10, dead_letter=DeadLetterPolicy(max_redeliver_count=3))


def test_a_keyword_wins_over_what_was_written_and_over_a_whole_object() -> None:
    assert load("memory:?producerConfig.sendTimeoutMs=5", send_timeout=2).producer.send_timeout == 2
    assert load("memory:?send_timeout=1", send_timeout=2).producer.send_timeout == 2
    both = load("memory:", producer=ProducerConfig(producer_name="p", send_timeout=1), send_timeout=2).producer
    assert both == ProducerConfig(producer_name="p", send_timeout=2)
    assert load("memory:", producer={"producer_name": "p"}, send_timeout=2).producer == both


@pytest.mark.parametrize(
    ("config", "options", "key"),
    [
        ("memory:?producerConfig.sendTimeoutMs=5&send_timeout=1", {}, "producerConfig.sendTimeoutMs"),
        ("memory:?producer.send_timeout=5&send_timeout=1", {}, "send_timeout"),
        ("memory:?consumerConfig.deadLetterPolicy.maxRedeliverCount=1&dead_letter.max_redeliver_count=2", {},
         "deadLetterPolicy"),
        ("memory:", {"producer": {"sendTimeoutMs": 5}, "send_timeout": 1}, "send_timeout"),
    ],
)  # fmt: skip
def test_an_option_given_twice_is_refused(config: str, options: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigurationError, match="is given twice") as caught:
        load(config, **options)
    assert caught.value.key == key


def test_a_name_that_two_sections_have_is_refused_with_the_two_ways_to_write_it() -> None:
    words = re.escape("give producer={'properties': ...} or consumer={'properties': ...}")
    with pytest.raises(ConfigurationError, match=words) as caught:
        load("memory:", properties={"team": "hidden"})  # type: ignore[call-arg]  # wrong on purpose
    assert caught.value.key == "properties"
    assert "hidden" not in str(caught.value)
    with pytest.raises(ConfigurationError, match=words):
        load("memory:?properties.team=x")
    assert "properties" not in KEYWORDS
    assert find_keyword("ack_timeout").holder is Section.CONSUMER


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("sned_timeout", "did you mean 'send_timeout'?"),
        ("sendTimeoutMs", "did you mean 'send_timeout'?"),
        ("recieve_queue_size", "did you mean 'receiver_queue_size'?"),
        ("numIoThreads", "did you mean 'io_threads'?"),
        ("deadLetterPolicy", "did you mean 'dead_letter'?"),
        ("max_redeliver_count", "did you mean dead_letter={'max_redeliver_count': ...}?"),
        ("maxRedeliverCount", "did you mean dead_letter={'max_redeliver_count': ...}?"),
        ("minDelayMs", "did you mean ack_timeout_backoff={'min_delay': ...}?"),
        ("producerConfig", "did you mean 'producer'?"),
        ("zzz", ""),
    ],
)
def test_a_misspelt_keyword_finds_the_nearest_one_of_all_sections(name: str, hint: str) -> None:
    wrong: dict[str, Any] = {name: 1}
    with pytest.raises(ConfigurationError) as caught:
        load("memory:", **wrong)
    assert str(caught.value).startswith(f"unknown option {name!r}")
    assert str(caught.value).partition("; ")[2] == hint


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("sned_timeout=1", "'send_timeout'"),
        ("sendTimeout=1", "'send_timeout'"),
        ("consumerConfig.sendTimeoutMs=1", "'producerConfig.sendTimeoutMs'"),
        ("consumerConfig.maxRedeliverCount=1", "'consumerConfig.deadLetterPolicy.maxRedeliverCount'"),
        ("consumerConfig.clientId=1", "'jms.clientId'"),
        ("producerConfig.receiverQueueSize=1", "'consumerConfig.receiverQueueSize'"),
        ("maxDelayMs=1", "'consumerConfig.ackTimeoutRedeliveryBackoff.maxDelayMs'"),
    ],
)
def test_a_misspelt_written_name_finds_the_nearest_one_of_all_sections(written: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(f"memory:?{written}")
    assert str(caught.value).endswith(f"; did you mean {hint}?")


def test_files_that_hold_no_map_of_options_are_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("[1]")
    with pytest.raises(ConfigurationError, match="map of options, not list"):
        read_file(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="can't read"):
        read_file(path)
    with pytest.raises(ConfigurationError, match="meant as a URL"):
        read_file(pathlib.Path("localhost:6650"))
    with pytest.raises(ConfigurationError, match="not int"):
        as_map(5, "it")
