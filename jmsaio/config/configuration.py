"""``Configuration``: every option of a connection factory in one frozen object, which reads no URLs or files."""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import attrs

from jmsaio.config import unsupported_options
from jmsaio.config.declaring import check_fields, declares, directory, group, idle_on, option
from jmsaio.config.options import (
    ON_MEMORY,
    ON_PULSAR,
    ON_PULSAR_CLIENT,
    ON_WIRE,
    Section,
    names_only,
)
from jmsaio.config.schemes import SCHEMES, Scheme, TransportEntry
from jmsaio.config.sections import ConsumerConfig, ProducerConfig
from jmsaio.errors import ConfigurationError
from jmsaio.model.arguments import shown

MIB = 1024 * 1024
_TOKEN_PLUGINS = ("token", "AuthenticationToken")


@declares(Section.CONNECTION, also=unsupported_options.CONNECTION)
@attrs.frozen(kw_only=True)
class Configuration:
    """All options of a connection factory; ``jmsaio guide configuration`` lists them.

    Created by ``load``. Durations are seconds, sizes bytes. ``repr`` shows no secret.

    Attributes:
        scheme: a scheme of the registry in ``jmsaio.config.schemes``, which selects the transport.
        broker_name: name of the embedded broker; "" for ``memory:`` and for other brokers.
        service_url: broker URL without options, with every port; ``memory:`` for the embedded broker.
        web_service_url: base URL of the REST interface; "" for the embedded broker.
        web_service_named: whether ``web_service_url`` was given; False if it is derived from ``service_url``.
        transport: name of the transport, or ``auto``: see ``transport_entry``.
        fallback: whether the embedded broker is used because no broker was configured.
        without_effect: names of the given options that have no effect on the transport; the factory logs them.
        ignored: a sentence for each invalid value of the environment; the factory logs them as warnings.
        producer: options of senders.
        consumer: options of receivers and readers, which a session or a destination can override.

    Raises:
        ConfigurationError: a value is invalid, or the transport refuses an option.
    """

    scheme: str = "memory"
    broker_name: str = ""
    service_url: str = option("memory:", "brokerServiceUrl", "URL of the broker")
    web_service_url: str = option(
        "", "webServiceUrl",
        "URL of the broker's REST interface; default: port 8080 (with TLS 8443) of the broker's first host",
        transports=ON_PULSAR,
    )  # fmt: skip
    web_service_named: bool = False
    transport: Literal["auto", "pulsar-client", "wire"] = option(
        "auto", "", "transport to a Pulsar broker; auto: wire with enableTransaction=true or if pulsar-client is not "
        "installed, else pulsar-client. What each has: 'jmsaio guide configuration', 'Transports'",
        exact=True, transports=ON_PULSAR,
    )  # fmt: skip
    fallback: bool = False
    without_effect: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    system_namespace: str = option(
        "public/default", "jms.systemNamespace", "tenant/namespace of destinations with short names"
    )
    client_id: str | None = option(None, "jms.clientId", "client identifier of every connection")
    queue_subscription_name: str = option("jms-queue", "jms.queueSubscriptionName", "subscription name of queues")
    queue_subscription_type: Literal["Shared", "Key_Shared"] = option(
        "Shared", "jms.queueSubscriptionType",
        "Key_Shared: all messages of a group id (JMSXGroupID) go to one consumer of the queue; jmsaio only",
    )  # fmt: skip
    topic_shared_subscription_type: Literal["Shared", "Key_Shared", "Failover"] = option(
        "Shared", "jms.topicSharedSubscriptionType", "subscription type of shared topic consumers"
    )
    use_exclusive_subscriptions_for_simple_consumers: bool = option(
        True, "jms.useExclusiveSubscriptionsForSimpleConsumers",
        "false: plain topic consumers use the type of shared ones",
    )  # fmt: skip
    use_pulsar_admin: bool = option(True, "jms.usePulsarAdmin", "false: never use the broker's REST interface")
    allow_temporary_topic_without_admin: bool = option(
        False, "jms.allowTemporaryTopicWithoutAdmin", "allow temporary destinations without the REST interface"
    )
    precreate_queue_subscription: bool = option(
        True, "jms.precreateQueueSubscription",
        "create a queue's subscription before the first send, and for a consumer if the broker creates none",
    )  # fmt: skip
    wait_for_server_startup_timeout: float = option(
        60.0, "jms.waitForServerStartupTimeout",
        "maximum wait for a queue's subscription, whose creation is retried every second; 0: one attempt", unit="ms",
    )  # fmt: skip
    enable_client_side_emulation: bool | None = option(
        None, "jms.enableClientSideEmulation",
        "false: refuse selectors and noLocal where the Java client refuses them",
    )  # fmt: skip
    use_server_side_filtering: bool = option(
        False, "jms.useServerSideFiltering",
        "evaluate selectors in the broker, with Starlight's filter plugin; see 'jmsaio guide selectors'",
    )  # fmt: skip
    refresh_server_side_filters_period: float = option(
        300.0, "jms.refreshServerSideFiltersPeriod",
        "interval of rereading the selectors that operators set on subscriptions; 0: never", unit="s",
    )  # fmt: skip
    acknowledge_rejected_messages: bool = option(
        False, "jms.acknowledgeRejectedMessages",
        "acknowledge messages that a selector rejects on a shared subscription",
    )  # fmt: skip
    enable_jms_priority: bool = option(
        False, "jms.enableJMSPriority",
        "choose the partition by priority; a consumer delivers its highest prefetched priority first",
    )  # fmt: skip
    priority_mapping: Literal["linear", "non-linear"] = option(
        "linear", "jms.priorityMapping", "mapping of priorities to partitions", exact=True
    )
    enable_transaction: bool = option(
        False, "enableTransaction", "allow transacted sessions, with transactions of the broker",
        transports=ON_WIRE + ON_MEMORY, refused_on=ON_PULSAR_CLIENT,
    )  # fmt: skip
    transaction_timeout: float = option(
        60.0, "", "time after which the broker rolls back an open transaction", unit="s", low=0.001,
        transports=ON_WIRE + ON_MEMORY,
    )  # fmt: skip
    emulate_transactions: bool = option(
        False, "jms.emulateTransactions",
        "allow transacted sessions without transactions of the broker; messages are sent immediately",
    )  # fmt: skip
    transactions_sticky_partitions: bool = option(
        False, "jms.transactionsStickyPartitions", "send all messages of a transaction to one partition"
    )
    force_delete_temporary_destinations: bool = option(
        False, "jms.forceDeleteTemporaryDestinations", "delete a temporary destination even while clients use it"
    )
    max_num_of_producers: int = option(
        1000, "jms.maxNumOfProducers",
        "maximum number of senders kept open for reuse; a topic has one for transactions and one without", low=1,
    )  # fmt: skip
    producer_auto_close: float | None = option(
        None, "jms.producerAutoCloseTimeoutSec", "idle time after which a cached sender is closed; negative: never",
        unit="s", off=-1,
    )  # fmt: skip
    use_credentials_from_create_connection: bool = option(
        False, "jms.useCredentialsFromCreateConnection", "use the password given to create_connection as the token"
    )
    tck_username: str | None = option(None, "jms.tckUsername", "user name that create_connection checks")
    tck_password: str | None = option(None, "jms.tckPassword", "password that create_connection checks", secret=True)

    auth_plugin: str | None = option(
        None, "authPlugin", "Pulsar's authentication class or its short name", transports=ON_PULSAR
    )
    auth_params: str | Callable[[], str] | None = option(
        None, "authParams", "parameters of the authentication; for tokens also a function that returns one, called "
        "for each connection", secret=True, transports=ON_PULSAR,
    )  # fmt: skip
    tls_allow_insecure_connection: bool = option(
        False, "tlsAllowInsecureConnection", "accept any certificate", transports=ON_PULSAR
    )
    tls_enable_hostname_verification: bool = option(
        True, "tlsEnableHostnameVerification", "require the certificate to name the host", transports=ON_PULSAR
    )
    tls_trust_certs_file_path: str | None = option(
        None, "tlsTrustCertsFilePath", "PEM file of trusted certificates", transports=ON_PULSAR
    )
    tls_key_file_path: str | None = option(None, "tlsKeyFilePath", "PEM file of the client's key", transports=ON_PULSAR)
    tls_certificate_file_path: str | None = option(
        None, "tlsCertificateFilePath", "PEM file of the client's certificate", transports=ON_PULSAR
    )
    operation_timeout: float = option(
        30.0, "operationTimeoutMs", "maximum time for a request to the broker", unit="ms", low=1
    )
    keep_alive_interval: float = option(
        30.0, "keepAliveIntervalSeconds", "time without data after which a PING is sent; a connection that stays "
        "silent for as long again is closed", unit="s", low=1, transports=ON_WIRE,
    )  # fmt: skip
    connections_per_broker: int = option(
        1, "connectionsPerBroker", "number of connections to each broker, which its producers and consumers share; 0 "
        "counts as 1", low=0, high=1000, transports=ON_WIRE,
    )  # fmt: skip
    initial_backoff: float = option(
        0.1, "initialBackoffIntervalNanos", "pause before the second attempt to reach a broker or a topic; each "
        "further one is twice as long", unit="ns", low=1_000_000, transports=ON_WIRE,
    )  # fmt: skip
    max_backoff: float = option(
        10.0, "maxBackoffIntervalNanos", "longest of these pauses (Starlight: 60 s)", unit="ns", low=1_000_000,
        transports=ON_WIRE,
    )  # fmt: skip
    lookup_properties: Mapping[str, str] = option(
        attrs.Factory(dict), "lookupProperties", "sent with each lookup of a topic, for the broker's load balancer",
        repr=names_only, transports=ON_WIRE,
    )  # fmt: skip
    max_lookup_redirects: int = option(
        20, "maxLookupRedirects", "how often brokers can refer the lookup of a topic to another broker", low=0,
        transports=ON_WIRE,
    )  # fmt: skip
    stats_interval_in_seconds: int = option(
        0, "statsIntervalSeconds", "interval of pulsar-client's statistics in the log; 0: none (Starlight: 60)",
        unit="s", low=0, transports=ON_PULSAR_CLIENT,
    )  # fmt: skip
    io_threads: int = option(
        1, "numIoThreads", "network threads of pulsar-client", low=1, high=1000, transports=ON_PULSAR_CLIENT
    )
    message_listener_threads: int = option(
        1, "numListenerThreads", "callback threads of pulsar-client", low=1, high=1000, transports=ON_PULSAR_CLIENT
    )
    concurrent_lookup_requests: int = option(
        5000, "concurrentLookupRequest", "maximum number of concurrent lookups", low=1, high=1_000_000,
        transports=ON_PULSAR,
    )  # fmt: skip
    connection_timeout_ms: int = option(
        10000, "connectionTimeoutMs", "maximum time to open a network connection, in ms", unit="ms", low=1,
        transports=ON_PULSAR,
    )  # fmt: skip
    listener_name: str | None = option(
        None, "listenerName", "advertised listener of the broker to connect to", transports=ON_PULSAR
    )
    send_window_bytes: int = option(
        64 * MIB, "memoryLimitBytes", "maximum number of sent, unconfirmed bytes per sender; 0: no limit", unit="bytes",
        low=0,
    )  # fmt: skip

    strict_client_id: bool = option(False, "", "refuse unshared durable subscriptions on connections without client id")
    acknowledge_scope: Literal["session", "group"] = option(
        "session", "", "messages that acknowledge in CLIENT mode covers: all of the session, or those up to this one",
        exact=True,
    )  # fmt: skip
    queue_browser_read_max: int = option(
        0, "", "maximum number of messages that a browser examines; 0 or negative: no limit"
    )
    expired_messages: Literal["remove", "dead-letter"] = option(
        "remove", "", "expired messages of queues whose consumer has a deadLetterPolicy: remove them, or make them "
        "dead letters", exact=True,
    )  # fmt: skip
    malformed: Literal["raise", "dead-letter", "deliver"] = option(
        "raise", "", "a message that can't be decoded: raise an error; make it a dead letter, if its consumer can; or "
        "deliver it as a BytesMessage with the properties as received", exact=True,
    )  # fmt: skip
    auto_start: bool = option(True, "", "start the connection in connect()")
    connect_timeout: float = option(30.0, "", "maximum time to connect", unit="s", low=0.001, transports=ON_PULSAR)
    close_timeout: float = option(30.0, "", "maximum total time of a close", unit="s")
    send_window_messages: int = option(
        5000, "", "maximum number of sent, unconfirmed messages per sender", low=1, high=1_000_000
    )
    receive_buffer: int = option(
        1000, "", "maximum number of received messages buffered in Python, per session", low=1, high=1_000_000
    )
    receive_buffer_bytes: int = option(
        64 * MIB, "", "maximum bytes of prefetched messages per connection; each consumer can exceed it by one "
        "message", unit="bytes", low=1,
    )  # fmt: skip
    max_unacknowledged_rejected: int = option(
        40_000, "", "maximum number of unacknowledged messages that a selector rejected, per consumer of a queue or "
        "shared subscription; up to 1000000. Keep it below the broker's maxUnackedMessagesPerConsumer (50000) and, "
        "for all consumers of a subscription together, below maxUnackedMessagesPerSubscription (200000)",
        low=1, high=1_000_000, transports=ON_PULSAR,
    )  # fmt: skip
    memory_limit: int = option(
        256 * MIB, "", "maximum bytes that an embedded broker stores", unit="bytes", low=1, transports=ON_MEMORY
    )
    filters: bool = option(
        False, "",
        "evaluate selectors in the embedded broker like Starlight's filter plugin, from now on for every client",
        transports=ON_MEMORY,
    )  # fmt: skip
    listener_concurrency: int = option(
        1, "", "maximum number of concurrent listener calls per session, up to 1000", low=1, high=1000
    )
    max_local_redeliveries: int = option(6, "", "number of redeliveries without delay after a listener failed", low=0)

    producer: ProducerConfig = group(Section.PRODUCER, ProducerConfig, "options of senders")
    consumer: ConsumerConfig = group(Section.CONSUMER, ConsumerConfig, "options of receivers")

    def __attrs_post_init__(self) -> None:
        check_fields(self)
        self._check_together()
        object.__setattr__(self, "without_effect", tuple(dict.fromkeys((*self.without_effect, *self._idle()))))

    def _idle(self) -> Iterator[str]:
        for held in (self, self.producer, self.consumer):
            yield from self.idle_in(held)

    def idle_in(self, held: object) -> Iterator[str]:
        """Yield the names of the options in ``held`` without an effect on the transport, unless at their default.

        Raises ConfigurationError if the transport refuses one of them.
        """
        return idle_on(self.used_transport, held, self._leaving_transactions)

    @property
    def transport_entry(self) -> TransportEntry:
        """The transport: the given one. For ``auto`` the first one of the URL's scheme that is installed, and that has
        transactions if ``enableTransaction`` is set.
        """
        return self._url_scheme.transport(self.transport, self.enable_transaction)

    @property
    def used_transport(self) -> str:
        return self.transport_entry.name

    @property
    def _leaving_transactions(self) -> str:
        return " with jms.emulateTransactions=true in place of enableTransaction=true" * self.enable_transaction

    @property
    def _url_scheme(self) -> Scheme:
        return SCHEMES[self.service_url.partition(":")[0]]

    def _check_together(self) -> None:
        tenant, slash, namespace = self.system_namespace.partition("/")
        if not (tenant and slash and namespace) or "/" in namespace or ":" in self.system_namespace:
            reason = f"option jms.systemNamespace = {shown(self.system_namespace)}: must be tenant/namespace"
            raise ConfigurationError(reason, key="jms.systemNamespace")
        if self.enable_transaction:
            self._check_transactions()
        if self.use_credentials_from_create_connection and not self._has_token_plugin():
            key = "jms.useCredentialsFromCreateConnection"
            raise ConfigurationError(f"option {key} = True needs authPlugin = 'token'", key=key)
        if self.auth_params is not None and self.auth_plugin is None:
            raise ConfigurationError("option authParams needs authPlugin, such as 'token'", key="authPlugin")

    def _check_transactions(self) -> None:
        key = "enableTransaction"
        if self.emulate_transactions:
            reason = f"option {key} = True: jms.emulateTransactions = True is set as well; set one of them, as in Java"
            raise ConfigurationError(reason, key=key)
        if not self.transport_entry.transactions:
            [able] = [each.name for each in self._url_scheme.transports if each.transactions]
            reason = f"option {key} = True: transport={self.used_transport} has no transactions; use transport={able}, "
            raise ConfigurationError(f"{reason}or set jms.emulateTransactions=true instead", key=key)

    @property
    def used_priority_mapping(self) -> str | None:
        """The mapping of JMS priorities to partitions; None if they don't choose partitions."""
        return self.priority_mapping if self.enable_jms_priority else None

    def queue_subscription(self, own: str | None) -> str:
        """Return the subscription of a queue whose name has its ``own``, or None."""
        return own or self.queue_subscription_name

    def type_of_queue(self, written: str | None) -> str:
        """Return the subscription type of a queue whose own options set ``written``; raises ConfigurationError."""
        used = self if written is None else attrs.evolve(self, queue_subscription_type=written)  # type: ignore[arg-type]  # checked there
        return used.queue_subscription_type

    @property
    def in_process(self) -> bool:
        """Whether the broker runs in this process, where no other process can reach it."""
        return SCHEMES[self.scheme].in_process

    def _has_token_plugin(self) -> bool:
        return self.auth_plugin is not None and self.auth_plugin.rpartition(".")[2] in _TOKEN_PLUGINS

    def __repr__(self) -> str:
        """Show the options that differ from the defaults, with secrets as ``***``."""
        secret = {option.field for option in directory(Section.CONNECTION).options if option.secret}
        shown = [f"service_url={self.service_url!r}"]
        for field in attrs.fields(type(self)):
            value = getattr(self, field.name)
            usual = field.default.factory() if isinstance(field.default, attrs.Factory) else field.default  # type: ignore[arg-type]  # attrs types Factory as a function
            if field.name == "service_url" or value == usual:
                continue
            text = "'***'" if field.name in secret and value is not None else repr(value)
            shown.append(f"{field.name}={text}")
        return f"Configuration({', '.join(shown)})"
