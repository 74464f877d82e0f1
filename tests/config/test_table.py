"""The option table of the connection: complete, and consistent with ``Configuration``."""

import pathlib
import re

import attrs
import pytest

import jmsaio.config
from jmsaio.config import Configuration, load
from jmsaio.config.options import Kind, Option, Status
from jmsaio.config.table import CONNECTION
from jmsaio.config.table_streams import CONSUMER, DEAD_LETTER, PRODUCER
from jmsaio.config.values import default
from jmsaio.errors import ConfigurationError

#: All names of Starlight's documentation and code (1.1 and 1.2).
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
#: Fields that follow from the URL or are whole objects, so that no row names them.
DERIVED = {"scheme", "broker_name", "fallback", "ignored", "client", "producer", "consumer"}


def test_the_table_has_every_name_of_starlight_and_no_name_twice() -> None:
    names = [option.name for option in CONNECTION]
    assert set(STARLIGHT) <= set(names)
    assert len(names) == len(set(names))


def test_rows_and_fields_belong_together_one_to_one() -> None:
    fields = {field.name for field in attrs.fields(Configuration)}
    rows = [option.field for option in CONNECTION if option.field]
    in_client = {option.field for option in CONNECTION if option.section.value == "client."}
    assert len(rows) == len(set(rows))
    assert set(rows) - in_client == fields - DERIVED
    assert not in_client & fields


@pytest.mark.parametrize("option", [o for o in CONNECTION if o.field and o.section.value == ""], ids=lambda o: o.name)
def test_the_rows_default_is_the_fields_default(option: Option) -> None:
    assert getattr(Configuration(), option.field) == default(option)


@pytest.mark.parametrize("option", CONNECTION, ids=lambda o: o.name)
def test_the_default_may_always_be_written(option: Option) -> None:
    if option.default is None or option.name == "brokerServiceUrl" or option.kind is Kind.SECRET:
        return
    text = str(option.default).lower() if option.kind is Kind.FLAG else str(option.default)
    config = load({option.name: text, "brokerServiceUrl": "memory:"} if text else {"brokerServiceUrl": "memory:"})
    assert attrs.evolve(config, client={}) == load("memory:")


@pytest.mark.parametrize(
    "option", [o for o in CONNECTION if o.status is not Status.BUILT], ids=lambda o: o.name
)  # fmt: skip
def test_what_is_not_built_is_refused_by_name(option: Option) -> None:
    other = {
        Kind.FLAG: str(option.default is not True).lower(), Kind.TEXT: "x", Kind.SECRET: "x", Kind.INTEGER: "777",
    }.get(option.kind, option.choices[-1] if option.choices else "x")  # fmt: skip
    sentence = f"option {re.escape(option.name)}.*(not built yet|no meaning)"
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        load({option.name: other, "brokerServiceUrl": "pulsar://h"})
    assert caught.value.key == option.name


def test_no_option_is_taken_and_ignored() -> None:
    """Every field of an option that is built is read somewhere outside this package."""
    package = pathlib.Path(jmsaio.config.__file__).parents[1]
    files = [path for path in package.rglob("*.py") if not {"config", "cli"} & set(path.relative_to(package).parts)]
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    options = (*CONNECTION, *PRODUCER, *CONSUMER, *DEAD_LETTER)
    fields = {option.field for option in options if option.field and option.status is Status.BUILT}
    assert sorted(field for field in fields if re.search(rf"[.\"]{field}\b", code) is None) == []


def test_every_row_says_what_it_is_for() -> None:
    assert [option.name for option in CONNECTION if not option.note] == []
