"""The names that Starlight documents: each is known, refused by name, used, or listed as one without an effect."""

import json
import pathlib
import re
import shlex
import subprocess
import uuid
from functools import partial
from typing import Any

import attrs
import pytest

import jmsaio
import jmsaio.config
from jmsaio.config import ConsumerConfig, ProducerConfig, load
from jmsaio.config.declaring import directory
from jmsaio.config.options import Kind, Option, Section, Status
from jmsaio.errors import ConfigurationError
from jmsaio.launcher import tools
from jmsaio.model.arguments import shown
from tests.support import scripts
from tests.support.secure import SecureBroker

option_tables = scripts.load(".mkdocs/option_tables.py")

CONNECTION = directory(Section.CONNECTION).options
PRODUCER = directory(Section.PRODUCER).options
CONSUMER = directory(Section.CONSUMER).options
DEAD_LETTER = directory(Section.DEAD_LETTER).options

#: All names of Starlight's documentation and code.
STARLIGHT = """
jms.systemNamespace jms.clientId jms.queueSubscriptionName jms.topicSharedSubscriptionType
jms.useExclusiveSubscriptionsForSimpleConsumers jms.usePulsarAdmin jms.allowTemporaryTopicWithoutAdmin
jms.precreateQueueSubscription jms.precreateQueueSubscriptionConsumerQueueSize jms.waitForServerStartupTimeout
jms.enableClientSideEmulation jms.useServerSideFiltering jms.acknowledgeRejectedMessages
jms.refreshServerSideFiltersPeriod jms.enableJMSPriority jms.priorityMapping jms.emulateTransactions
jms.transactionsStickyPartitions jms.forceDeleteTemporaryDestinations jms.sessionListenersThreads
jms.maxMessagesLimitsParallelism jms.connectionConsumerStopTimeout jms.maxNumOfProducers
jms.producerAutoCloseTimeoutSec jms.useCredentialsFromCreateConnection jms.tckUsername jms.tckPassword
jms.useSharedJNDIContext webServiceUrl brokerServiceUrl enableTransaction authPlugin authParams
tlsAllowInsecureConnection tlsEnableHostnameVerification tlsTrustCertsFilePath useKeyStoreTls tlsTrustStoreType
tlsTrustStorePath tlsTrustStorePassword operationTimeoutMs lookupTimeoutMs statsIntervalSeconds numIoThreads
numListenerThreads connectionsPerBroker connectionMaxIdleSeconds useTcpNoDelay useTls tlsKeyFilePath
tlsCertificateFilePath concurrentLookupRequest maxLookupRequest maxLookupRedirects
maxNumberOfRejectedRequestPerConnection keepAliveIntervalSeconds connectionTimeoutMs requestTimeoutMs readTimeoutMs
autoCertRefreshSeconds initialBackoffIntervalNanos maxBackoffIntervalNanos enableBusyWait listenerName sslProvider
tlsKeyStoreType tlsKeyStorePath tlsKeyStorePassword tlsCiphers tlsProtocols memoryLimitBytes proxyServiceUrl
proxyProtocol dnsLookupBindAddress dnsLookupBindPort dnsServerAddresses socks5ProxyAddress socks5ProxyUsername
socks5ProxyPassword description
""".split()  # noqa: SIM905  # a long list of words reads best as text
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


@pytest.mark.parametrize(
    ("options", "names"), [(CONNECTION, STARLIGHT), (PRODUCER, STARLIGHT_PRODUCER), (CONSUMER, STARLIGHT_CONSUMER)]
)
def test_every_name_of_starlight_is_known_and_no_name_twice(options: tuple[Option, ...], names: list[str]) -> None:
    keys = [option.key for option in options]
    assert set(names) <= set(keys)
    assert len(keys) == len(set(keys))
    assert [option.name for option in options if not option.doc] == []


def test_the_default_may_always_be_written() -> None:
    for option in CONNECTION:
        default: Any = option_tables.written_default(option)
        if default is None or option.name == "brokerServiceUrl" or option.kind in (Kind.SECRET, Kind.MAP):
            continue
        text = str(default).lower() if option.kind is Kind.FLAG else str(default)
        if option.kind is Kind.LIST:
            text = ",".join(sorted(default, reverse=True))
        config = load({option.name: text, "brokerServiceUrl": "memory:"} if text else {"brokerServiceUrl": "memory:"})
        assert config == load("memory:"), option.name


def test_what_is_not_built_is_refused_by_name() -> None:
    for option in (option for option in CONNECTION if option.status is Status.NOT_BUILT):
        other = {
            Kind.FLAG: str(option.default is not True).lower(), Kind.INTEGER: "777", Kind.MAP: {"x": "y"},
        }.get(option.kind, "x")  # fmt: skip
        sentence = f"option {re.escape(option.name)}.* known but not supported"
        with pytest.raises(ConfigurationError, match=sentence) as caught:
            load({option.name: other, "brokerServiceUrl": "pulsar://h"})
        assert caught.value.key == option.name


def test_defaults_may_be_written_and_what_is_not_built_may_not() -> None:
    for option in (*PRODUCER, *CONSUMER):
        base: ProducerConfig | ConsumerConfig = ProducerConfig() if option in PRODUCER else ConsumerConfig()
        if option.default is not None:
            assert base.merge({option.key: option_tables.written_default(option)}) == base, option.name
        if option.status is Status.NOT_BUILT and option.kind in (Kind.FLAG, Kind.INTEGER, Kind.TEXT):
            with pytest.raises(Exception, match=f"option {option.name}.* known but not supported"):
                base.merge({option.key: {Kind.FLAG: not option.default, Kind.INTEGER: 777}.get(option.kind, "x")})


IDLE = [o for o in (*CONNECTION, *PRODUCER, *CONSUMER, *DEAD_LETTER) if o.status is Status.NO_EFFECT]


@pytest.mark.parametrize("value", [False, True, 777, "x"])
def test_an_option_without_an_effect_is_accepted_and_listed(value: object) -> None:
    """Whatever its value is, in each way to write its name, and nothing else depends on it."""
    for option in IDLE:
        head, _, last = option.name.rpartition(".")
        base: dict[str, object] = {"consumerConfig.deadLetterPolicy.maxRedeliverCount": 3}
        given: object = {last: value} if option.kind is Kind.MAP else value
        nested: dict[str, object] = {last: given}
        for name in reversed(head.split(".") if head else []):
            nested = {name: nested}
        written = [base | {option.name: given}]
        if option.section is not Section.DEAD_LETTER:  # a policy is replaced whole
            written.append(base | nested)
        for config in written:
            loaded = load({"brokerServiceUrl": "memory:", **config})
            assert loaded.without_effect == (option.name,), option.name
            assert attrs.evolve(loaded, without_effect=()) == load({"brokerServiceUrl": "memory:", **base}), option.name


def test_options_without_an_effect_are_listed_under_keywords_too() -> None:
    policy = {"max_redeliver_count": 3, "retryLetterTopic": "r"}
    config = load("memory:", producer={"maxPendingMessages": 5}, consumer={"poolMessages": True, "dead_letter": policy})
    assert config.without_effect == (
        "producerConfig.maxPendingMessages",
        "consumerConfig.poolMessages",
        "consumerConfig.deadLetterPolicy.retryLetterTopic",
    )
    assert load("memory:", consumer=config.consumer).without_effect == ()


#: Legal values of Java, none of them the default here: all keys of Starlight, and all of Pulsar's client.
JAVA: dict[str, Any] = {
    "brokerServiceUrl": "pulsar+ssl://a:6651,b:6651", "webServiceUrl": "https://a:8443", "serviceUrl": "pulsar://c:6650",
    "jms.systemNamespace": "shop/orders", "jms.clientId": "billing", "jms.queueSubscriptionName": "queue",
    "jms.topicSharedSubscriptionType": "Key_Shared", "jms.useExclusiveSubscriptionsForSimpleConsumers": "false",
    "jms.usePulsarAdmin": "false", "jms.allowTemporaryTopicWithoutAdmin": "true",
    "jms.precreateQueueSubscription": "false", "jms.precreateQueueSubscriptionConsumerQueueSize": 1,
    "jms.waitForServerStartupTimeout": "5000", "jms.enableClientSideEmulation": True,
    "jms.useServerSideFiltering": True, "jms.acknowledgeRejectedMessages": True,
    "jms.refreshServerSideFiltersPeriod": 60, "jms.enableJMSPriority": True, "jms.priorityMapping": "non-linear",
    "jms.emulateTransactions": "true", "jms.transactionsStickyPartitions": True,
    "jms.forceDeleteTemporaryDestinations": True, "jms.sessionListenersThreads": 8,
    "jms.maxMessagesLimitsParallelism": True, "jms.connectionConsumerStopTimeout": 1000, "jms.maxNumOfProducers": "50",
    "jms.producerAutoCloseTimeoutSec": 60, "jms.useCredentialsFromCreateConnection": True, "jms.tckUsername": "u",
    "jms.tckPassword": "p", "jms.useSharedJNDIContext": True, "enableTransaction": True,
    "authPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken", "authParams": "token:abc",
    "authPluginClassName": "org.apache.pulsar.client.impl.auth.AuthenticationToken", "authParamMap": {"token": "abc"},
    "originalPrincipal": "admin", "useTls": True, "tlsAllowInsecureConnection": True,
    "tlsEnableHostnameVerification": False, "tlsHostnameVerificationEnable": True, "tlsTrustCertsFilePath": "ca.pem",
    "tlsKeyFilePath": "key.pem", "tlsCertificateFilePath": "cert.pem", "useKeyStoreTls": True,
    "tlsTrustStoreType": "PKCS12", "tlsTrustStorePath": "trust.p12", "tlsTrustStorePassword": "changeit",
    "tlsKeyStoreType": "PKCS12", "tlsKeyStorePath": "key.p12", "tlsKeyStorePassword": "changeit",
    "tlsCiphers": ["TLS_AES_128_GCM_SHA256"], "tlsProtocols": ["TLSv1.3"], "sslProvider": "Conscrypt",
    "sslFactoryPlugin": "com.example.Ssl", "sslFactoryPluginParams": "x", "autoCertRefreshSeconds": 60,
    "operationTimeoutMs": 20000, "lookupTimeoutMs": 20000, "requestTimeoutMs": 20000, "readTimeoutMs": 20000,
    "statsIntervalSeconds": 60, "numIoThreads": 4, "numListenerThreads": 4, "connectionsPerBroker": 2,
    "connectionMaxIdleSeconds": 60, "useTcpNoDelay": False, "concurrentLookupRequest": 100, "maxLookupRequest": 1000,
    "maxLookupRedirects": 5, "maxNumberOfRejectedRequestPerConnection": 10, "keepAliveIntervalSeconds": 10,
    "connectionTimeoutMs": 5000, "initialBackoffIntervalNanos": 2 * 10**8, "maxBackoffIntervalNanos": 30 * 10**9,
    "enableBusyWait": True, "listenerName": "internal", "memoryLimitBytes": 0, "proxyServiceUrl": "pulsar://proxy:6650",
    "proxyProtocol": "SNI", "dnsLookupBindAddress": "10.0.0.1", "dnsLookupBindPort": 5353,
    "dnsServerAddresses": ["10.0.0.2:53"], "socks5ProxyAddress": "socks:1080", "socks5ProxyUsername": "u",
    "socks5ProxyPassword": "p", "description": "billing", "lookupProperties": {"zone": "a"},
}  # fmt: skip
JAVA_PRODUCER: dict[str, Any] = {
    "batchingEnabled": False, "batchingMaxPublishDelayMicros": 500, "batchingMaxMessages": -1, "batchingMaxBytes": 0,
    "sendTimeoutMs": 5000, "blockIfQueueFull": True, "maxPendingMessages": 1000,
    "maxPendingMessagesAcrossPartitions": 50000, "compressionType": "LZ4", "chunkingEnabled": True,
    "chunkMaxMessageSize": 1000, "hashingScheme": "Murmur3_32Hash", "producerName": "p", "accessMode": "Exclusive",
    "initialSequenceId": 5, "autoUpdatePartitions": False, "autoUpdatePartitionsIntervalSeconds": 5,
    "lazyStartPartitionedProducers": True, "initialSubscriptionName": "s", "encryptionKeys": ["k"],
    "cryptoKeyReader": "com.example.Keys", "cryptoFailureAction": "SEND", "batcherBuilder": "KEY_BASED",
    "batchingPartitionSwitchFrequencyByPublishDelay": 5, "messageRoutingMode": "SinglePartition", "multiSchema": False,
    "nonPartitionedTopicExpected": True, "replProducer": True, "topicName": "t", "properties": {"a": "b"},
}  # fmt: skip
JAVA_CONSUMER: dict[str, Any] = {
    "useSchema": True, "receiverQueueSize": 10, "maxTotalReceiverQueueSizeAcrossPartitions": 100,
    "ackTimeoutMillis": 30000, "negativeAckRedeliveryDelayMicros": 10**6, "acknowledgementsGroupTimeMicros": 0,
    "maxAcknowledgmentGroupSize": 10, "ackReceiptEnabled": True, "batchIndexAckEnabled": False, "consumerName": "c",
    "priorityLevel": 1, "readCompacted": True, "patternAutoDiscoveryPeriod": 5, "regexSubscriptionMode": "AllTopics",
    "replicateSubscriptionState": True, "maxPendingChunkedMessage": 5, "maxPendingChuckedMessage": 5,
    "autoAckOldestChunkedMessageOnQueueFull": True, "expireTimeOfIncompleteChunkedMessageMillis": 1000,
    "autoUpdatePartitions": False, "autoUpdatePartitionsIntervalSeconds": 5, "poolMessages": True,
    "cryptoKeyReader": "com.example.Keys", "cryptoFailureAction": "CONSUME", "retryEnable": True, "startPaused": True,
    "resetIncludeHead": True, "autoScaledReceiverQueueSizeEnabled": True, "negativeAckPrecisionBitCnt": 4,
    "tickDurationMillis": 500, "topicNames": ["t"], "topicsPattern": ".*",
    "topicConfigurations": [{"priorityLevel": 1}],
    "subscriptionName": "s", "subscriptionType": "Shared", "subscriptionMode": "Durable",
    "subscriptionProperties": {"a": "b"}, "subscriptionInitialPosition": "Earliest", "properties": {"a": "b"},
    "deadLetterPolicy": {
        "maxRedeliverCount": 2, "deadLetterTopic": "d", "initialSubscriptionName": "s", "retryLetterTopic": "r",
    },
    "negativeAckRedeliveryBackoff": {"minDelayMs": 10, "maxDelayMs": 100, "multiplier": 3.0},
    "ackTimeoutRedeliveryBackoff": {"minDelayMs": 10, "maxDelayMs": 100, "multiplier": 3.0},
}  # fmt: skip


#: Values of the options that Java has not, none of them the default.
OURS: dict[str, Any] = {
    "jms.queueSubscriptionType": "Key_Shared", "strict_client_id": True, "acknowledge_scope": "group",
    "queue_browser_read_max": 5, "expired_messages": "dead-letter", "malformed": "deliver", "auto_start": False,
    "connect_timeout": 5, "close_timeout": 5, "send_window_messages": 5, "receive_buffer": 5, "receive_buffer_bytes": 5,
    "max_unacknowledged_rejected": 5, "memory_limit": 5, "filters": True, "listener_concurrency": 5,
    "max_local_redeliveries": 5, "transaction_timeout": 5,
}  # fmt: skip
#: These choose the broker or the transport, and are not looked at one by one.
CHOOSING = {"brokerServiceUrl", "transport", "useTls"}
#: The code of each transport.
FOLDERS = {"memory": ("memory",), "pulsar-client": ("pulsar", "native"), "wire": ("pulsar", "wire")}
#: The broker of each transport.
BROKERS: dict[str, dict[str, Any]] = {
    "memory": {"brokerServiceUrl": "memory:"},
    "pulsar-client": {"brokerServiceUrl": "pulsar://a:6650", "transport": "pulsar-client"},
    "wire": {"brokerServiceUrl": "pulsar://a:6650", "transport": "wire"},
}


def _given(option: Option) -> dict[str, Any]:
    """A configuration with one option that is not at its default, and what that one needs."""
    values: dict[str, Any] = {Section.PRODUCER: JAVA_PRODUCER, Section.CONSUMER: JAVA_CONSUMER}.get(
        option.section, JAVA | OURS
    )
    needed: dict[str, dict[str, Any]] = {
        "authParams": {"authPlugin": "token"}, "chunkingEnabled": {"producerConfig.batchingEnabled": False},
        "jms.useCredentialsFromCreateConnection": {"authPlugin": "token"},
    }  # fmt: skip
    return {option.name: values[option.key], **needed.get(option.key, {})}


@pytest.mark.parametrize("transport", BROKERS)
def test_every_option_is_obeyed_listed_or_refused_by_each_transport(transport: str) -> None:
    """No option is silently without effect: an obeyed one is read in the code that the transport runs."""
    code, derived = _code_with(transport), "\n".join(_files("config"))
    for option in (each for each in (*CONNECTION, *PRODUCER, *CONSUMER) if each.key not in CHOOSING):
        given = BROKERS[transport] | _given(option)
        if option.status is Status.NOT_BUILT or transport in option.refused_on:
            with pytest.raises(ConfigurationError) as refused:
                load(given)
            assert refused.value.key == option.name
            assert f"option {option.name}" in str(refused.value)
            if option.status is Status.BUILT:
                assert shown(given[option.name]) in str(refused.value)
                assert f"; use transport={option.transports[0]}" in str(refused.value)
            else:
                assert option.doc in str(refused.value)
            continue
        obeyed = option.status is Status.BUILT and transport in option.transports
        assert (option.name in load(given).without_effect) is not obeyed, option.name
        if obeyed and option.field:
            assert re.search(rf"[.\"]{option.field}\b", code) or f"self.{option.field}" in derived, option.name


def test_every_key_of_java_is_an_option() -> None:
    ours = {*OURS, "transport"}
    assert {option.key for option in CONNECTION} == JAVA.keys() | ours
    assert {option.key for option in PRODUCER} == JAVA_PRODUCER.keys()
    groups = {"deadLetterPolicy", "negativeAckRedeliveryBackoff", "ackTimeoutRedeliveryBackoff"}
    assert {option.key for option in CONSUMER} | groups == JAVA_CONSUMER.keys()


def test_the_map_of_java_sets_every_field() -> None:
    """All at once, except what pulsar-client refuses."""
    connection, producer, consumer = (
        {
            option.key: values[option.key]
            for option in options
            if option.status is not Status.NOT_BUILT and not option.refused_on and option.key in values
        }
        for options, values in ((CONNECTION, JAVA), (PRODUCER, JAVA_PRODUCER), (CONSUMER, JAVA_CONSUMER))
    )
    groups = {"deadLetterPolicy", "negativeAckRedeliveryBackoff", "ackTimeoutRedeliveryBackoff"}
    consumer |= {name: JAVA_CONSUMER[name] for name in groups}
    config = load(connection | {"producerConfig": producer, "consumerConfig": consumer})
    assert {option.name for option in IDLE} <= set(config.without_effect)
    usual = load("pulsar://h")
    for held, basis, section in (
        (config, usual, Section.CONNECTION), (config.producer, usual.producer, Section.PRODUCER),
        (config.consumer, usual.consumer, Section.CONSUMER),
    ):  # fmt: skip
        given = {Section.CONNECTION: connection, Section.PRODUCER: producer, Section.CONSUMER: consumer}[section]
        for option in directory(section).options:
            if option.field and option.key in given and option.status is Status.BUILT:
                assert getattr(held, option.field) != getattr(basis, option.field), option.name
    assert config.consumer.dead_letter is not None and config.consumer.ack_timeout_backoff is not None


def test_options_of_a_transport_are_judged_however_they_are_given() -> None:
    priority = ConsumerConfig(priority_level=3)
    for options in ({"priority_level": 3}, {"consumer": priority}, {"consumer": {"priorityLevel": 3}}):
        assert load("pulsar://h", transport="wire", **options).consumer == priority
        with pytest.raises(ConfigurationError, match="transport=pulsar-client does not have this option"):
            load("pulsar://h", **options)
    assert load("pulsar://h", keep_alive_interval=5).without_effect == ("keepAliveIntervalSeconds",)
    assert load("pulsar://h", transport="wire", io_threads=4).without_effect == ("numIoThreads",)


@pytest.mark.parametrize(
    "config",
    [
        {"webServiceUrl": "http://localhost:8080", "brokerServiceUrl": "pulsar://localhost:6650"},
        {"webServiceUrl": "http://localhost:8080", "enableTransaction": "false", "jms.emulateTransactions": "true"},
        {"webServiceUrl": "http://localhost:8080", "brokerServiceUrl": "", "authPlugin": "", "authParams": ""},
        {"jms.precreateQueueSubscription": "true"},
        {
            "webServiceUrl": "https://h:443", "brokerServiceUrl": "pulsar+ssl://h:6651", "authParams": "token:abc",
            "authPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken", "enableTransaction": False,
            "producerConfig": {"batchingEnabled": True, "batcherBuilder": "KEY_BASED"},
        },
        {"jms.useExclusiveSubscriptionsForSimpleConsumers": "false", "jms.clientId": "c", "tlsTrustCertsFilePath": ""},
        {
            "consumerConfig": {
                "receiverQueueSize": 1, "ackTimeoutMillis": 1000,
                "deadLetterPolicy": {"maxRedeliverCount": 1, "deadLetterTopic": "d", "initialSubscriptionName": "s"},
                "negativeAckRedeliveryBackoff": {"minDelayMs": 10, "maxDelayMs": 100, "multiplier": 2.0},
                "ackTimeoutRedeliveryBackoff": {"minDelayMs": 10, "maxDelayMs": 100, "multiplier": 2.0},
            },
        },
    ],
)  # fmt: skip
def test_the_maps_of_starlights_documentation_load_unchanged(config: dict[str, Any]) -> None:
    assert load(config).without_effect == ()


def test_the_complete_defaults_of_the_java_client_load(java_classpath: str, java_peer_dir: pathlib.Path) -> None:
    """No key of its three configuration classes is missing here."""
    command = [str(tools.find("java")), "-cp", f"{java_classpath}:{java_peer_dir}", "Defaults"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)
    assert len(found) >= 30
    config = load({"brokerServiceUrl": "pulsar://h", **found})
    assert config.consumer.negative_ack_redelivery_delay == 60.0
    assert "lookupTimeoutMs" in config.without_effect


def _run(folder: pathlib.Path, command: str, passwords: str) -> None:
    """Run a command that asks for passwords, with them; ``keytool`` is the one beside Java."""
    keytool = str(pathlib.Path(str(tools.find("java"))).resolve().with_name("keytool"))
    words = [keytool if word == "keytool" else word for word in shlex.split(f"{command} {passwords}")]
    subprocess.run(words, cwd=folder, capture_output=True, check=True, timeout=120)


async def test_the_commands_of_the_refusal_convert_javas_key_stores(
    tmp_path: pathlib.Path, secure_broker: SecureBroker
) -> None:
    """They are in the error; only the passwords are added, which they ask for. A broker takes what they make."""
    with pytest.raises(ConfigurationError) as refused:
        load("pulsar+ssl://h?useKeyStoreTls=true&tlsTrustStorePath=trust.jks")
    commands = re.findall("`(.*?)`", str(refused.value))
    guide = pathlib.Path(jmsaio.__file__).with_name("guide") / "migrating.md"
    assert len(commands) == 2 and "\n".join(commands) in guide.read_text(encoding="utf-8")
    run = partial(_run, tmp_path)
    certificate, key = (each.partition(":")[2] for each in secure_broker.certificate().split(","))
    store = "-storepass changeit -noprompt"
    run(f"keytool -importcert -keystore trust.jks -alias ca -file {secure_broker.authority}", f"-storetype JKS {store}")
    run(f"openssl pkcs12 -export -in {certificate} -inkey {key} -out a.p12", "-passout pass:changeit")
    passwords = "-srcstorepass changeit -deststorepass changeit -noprompt"
    run("keytool -importkeystore -srckeystore a.p12 -destkeystore client.jks -deststoretype JKS", passwords)
    for importing, extracting in (command.split(" && ") for command in commands):
        run(importing, passwords)
        run(extracting, "-passin pass:changeit")
    both = tmp_path / "client.pem"
    options = secure_broker.options(tls=True, plugin="tls", params=f"tlsCertFile:{both},tlsKeyFile:{both}")
    options["tlsTrustCertsFilePath"] = str(tmp_path / "trust.pem")
    async with jmsaio.connect(options) as connection, connection.create_session() as session:
        queue = session.create_queue(f"key-stores-{uuid.uuid4()}")
        await (await session.create_producer(queue)).send("x")
        message = await (await session.create_consumer(queue)).receive(timeout=30)
        assert message is not None and message.text == "x"


def _files(*parts: str) -> list[str]:
    """The source of the files of a part of the package."""
    package = pathlib.Path(jmsaio.config.__file__).parents[1]
    return [path.read_text(encoding="utf-8") for path in package.joinpath(*parts).rglob("*.py")]


def _code_with(transport: str) -> str:
    """The source that runs with one of the transports, without configuration and command line."""
    others = {text for name, folder in FOLDERS.items() if name != transport for text in _files("transport", *folder)}
    return "\n".join(set(_files()) - others - set(_files("config")) - set(_files("cli")))


@pytest.mark.parametrize(("name", "folder"), FOLDERS.items())
def test_a_transport_reads_no_option_that_is_declared_without_effect_on_it(name: str, folder: tuple[str, ...]) -> None:
    code = "\n".join(_files("transport", *folder))
    options = (*CONNECTION, *PRODUCER, *CONSUMER, *DEAD_LETTER)
    elsewhere = {option.field for option in options if name not in option.transports} - {"properties"}
    assert len(elsewhere) >= 1
    assert sorted(field for field in elsewhere if re.search(rf"config\.{field}\b", code)) == []
