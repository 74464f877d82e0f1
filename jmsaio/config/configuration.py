"""``Configuration``: every option of a connection factory as one frozen value. It does not read URLs or files."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from jmsaio.config.mapping import read_section
from jmsaio.config.options import Directory, Section
from jmsaio.config.streams import ConsumerConfig, ProducerConfig, check_fields
from jmsaio.config.table import CONNECTION
from jmsaio.errors import ConfigurationError

#: Schemes of a broker URL that this client takes, with the default port.
SCHEMES = {"memory": 0, "pulsar": 6650, "pulsar+ssl": 6651, "http": 8080, "https": 8443}

CONNECTION_OPTIONS = Directory(option for option in CONNECTION if option.section is Section.CONNECTION)
CLIENT_OPTIONS = Directory(option for option in CONNECTION if option.section is Section.CLIENT)
_TOKEN_PLUGINS = ("token", "AuthenticationToken")


def _secret(value: str | None) -> str:
    return "None" if value is None else "'***'"


@attrs.frozen(kw_only=True)
class Configuration:
    """All options of a connection factory. Durations are seconds, sizes bytes; ``jmsaio guide configuration`` explains.

    Made by ``load``; the option table has a row for each field that can be set. ``repr`` shows no secret.

    Attributes:
        scheme: ``memory``, ``pulsar`` or ``pulsar+ssl``.
        broker_name: name of the embedded broker, "" for the one of ``memory:``; only with that scheme.
        service_url: broker URL without options, with every port; ``memory:`` for the embedded broker.
        web_service_url: base URL of the REST interface, "" for the embedded broker.
        fallback: True when nothing was configured and the embedded broker stands in.
        ignored: sentences on what the environment holds and can't be used; the factory logs them as warnings.
        producer: how senders are made.
        consumer: how receivers and readers are made, before a session's or destination's own settings.
        client: further settings by their ``pulsar.Client`` keyword, only those that were given.

    Raises:
        ConfigurationError: a value that can't be used.
    """

    scheme: str = "memory"
    broker_name: str = ""
    service_url: str = "memory:"
    web_service_url: str = ""
    fallback: bool = False
    ignored: tuple[str, ...] = ()
    client_id: str | None = None
    system_namespace: str = "public/default"
    queue_subscription_name: str = "jms-queue"
    topic_shared_subscription_type: str = "Shared"
    use_exclusive_subscriptions_for_simple_consumers: bool = True
    use_pulsar_admin: bool = True
    allow_temporary_topic_without_admin: bool = False
    precreate_queue_subscription: bool = True
    wait_for_server_startup_timeout: float = 60.0
    enable_client_side_emulation: bool | None = None
    acknowledge_rejected_messages: bool = False
    enable_jms_priority: bool = False
    priority_mapping: str = "linear"
    emulate_transactions: bool = False
    transactions_sticky_partitions: bool = False
    force_delete_temporary_destinations: bool = False
    max_num_of_producers: int = 1000
    producer_auto_close: float | None = None
    use_credentials_from_create_connection: bool = False
    tck_username: str | None = None
    tck_password: str | None = attrs.field(default=None, repr=_secret)
    auth_plugin: str | None = None
    auth_params: str | None = attrs.field(default=None, repr=_secret)
    tls_allow_insecure_connection: bool = False
    tls_enable_hostname_verification: bool = True
    tls_trust_certs_file_path: str | None = None
    tls_key_file_path: str | None = None
    tls_certificate_file_path: str | None = None
    strict_client_id: bool = False
    acknowledge_scope: str = "session"
    queue_browser_read_max: int = 0
    expired_messages: str = "remove"
    malformed: str = "raise"
    auto_start: bool = True
    connect_timeout: float = 30.0
    operation_timeout: float = 30.0
    close_timeout: float = 30.0
    send_window_messages: int = 5000
    send_window_bytes: int = 64 * 1024 * 1024
    receive_buffer: int = 1000
    receive_buffer_bytes: int = 64 * 1024 * 1024
    max_unacknowledged_rejected: int = 40_000
    memory_limit: int = 256 * 1024 * 1024
    listener_concurrency: int = 1
    max_local_redeliveries: int = 6
    client: Mapping[str, object] = attrs.field(factory=dict)
    producer: ProducerConfig = attrs.field(factory=ProducerConfig)
    consumer: ConsumerConfig = attrs.field(factory=ConsumerConfig)

    def __attrs_post_init__(self) -> None:
        check_fields(self, CONNECTION_OPTIONS)
        object.__setattr__(self, "client", read_section(CLIENT_OPTIONS, self.client, ""))
        for field, kind in (("producer", ProducerConfig), ("consumer", ConsumerConfig)):
            value = getattr(self, field)
            if isinstance(value, Mapping):
                object.__setattr__(self, field, kind().merge(value))
            elif not isinstance(value, kind):
                raise ConfigurationError(f"option {field} needs a {kind.__name__} or a map", key=field)
        self._check_together()

    def _check_together(self) -> None:
        """Rules between options."""
        tenant, slash, namespace = self.system_namespace.partition("/")
        if not (tenant and slash and namespace) or "/" in namespace or ":" in self.system_namespace:
            reason = f"option jms.systemNamespace = {self.system_namespace!r}: must be tenant/namespace"
            raise ConfigurationError(reason, key="jms.systemNamespace")
        if self.use_credentials_from_create_connection and not self._has_token_plugin():
            key = "jms.useCredentialsFromCreateConnection"
            raise ConfigurationError(f"option {key} = True needs authPlugin = 'token'", key=key)
        if self.auth_params is not None and self.auth_plugin is None:
            raise ConfigurationError("option authParams needs authPlugin, such as 'token'", key="authPlugin")

    def _has_token_plugin(self) -> bool:
        return self.auth_plugin is not None and self.auth_plugin.rpartition(".")[2] in _TOKEN_PLUGINS

    def __repr__(self) -> str:
        """What differs from the defaults; secrets as ``***``."""
        shown = [f"service_url={self.service_url!r}"]
        for field in attrs.fields(type(self)):
            value = getattr(self, field.name)
            usual = field.default.factory() if isinstance(field.default, attrs.Factory) else field.default  # type: ignore[arg-type]  # attrs types Factory as a function
            if field.name == "service_url" or value == usual:
                continue
            text = field.repr(value) if callable(field.repr) else repr(value)
            shown.append(f"{field.name}={text}")
        return f"Configuration({', '.join(shown)})"
