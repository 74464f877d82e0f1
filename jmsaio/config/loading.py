"""``load``: one ``Configuration`` from a URL, a map, a file, the environment and keyword options."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping
from typing import Any, NoReturn

from jmsaio.config.configuration import CLIENT_OPTIONS, CONNECTION_OPTIONS, Configuration
from jmsaio.config.mapping import flatten, take_group
from jmsaio.config.options import Directory, nearest
from jmsaio.config.sources import Broker, as_map, check_web_url, is_url, parse_broker, read_file, split_url
from jmsaio.config.streams import ConsumerConfig, ProducerConfig
from jmsaio.config.table_streams import CONSUMER, DEAD_LETTER, NACK_BACKOFF, PRODUCER
from jmsaio.config.values import given, written
from jmsaio.errors import ConfigurationError

#: Environment: the broker when none is given, and the limit of a browser when none is given.
ENVIRON_URL = "JMSAIO_URL"
ENVIRON_BROWSER = "JMSAIO_QUEUE_BROWSER_READ_MAX"

_ALL = Directory(
    (*CONNECTION_OPTIONS.options, *CLIENT_OPTIONS.options),
    others=(option.name for option in (*PRODUCER, *CONSUMER, *DEAD_LETTER, *NACK_BACKOFF)),
)
_FIELDS = {option.field: option for option in _ALL.options if option.field}
_GROUPS = {"producerConfig": "producer", "consumerConfig": "consumer"}
_WEB = frozenset({"webServiceUrl", "web_service_url"})


def load(
    config: str | Mapping[str, object] | os.PathLike[str] | None = None,
    /,
    environ: Mapping[str, str] = {},  # only read
    **options: object,
) -> Configuration:
    """Read a configuration.

    Args:
        config: a URL (``memory:``, ``pulsar://host:6650?jms.clientId=billing``), Starlight's map of options, the path
            of a JSON or TOML file with such a map, or None: ``$JMSAIO_URL``, else the embedded broker.
        environ: the environment; nothing else is read from it.
        options: fields of ``Configuration`` by name; they win over ``config``. Durations are seconds or timedelta.

    Raises:
        ConfigurationError: an unknown option (with the nearest name), one that is not built yet, one given twice,
            or a value that can't be used. Secrets are never shown.
    """
    source, broker = _read(config)
    service = options.pop("service_url", None)
    for name in ("brokerServiceUrl", "service_url"):
        service = source.pop(name, None) if service is None else service
    if service is not None and broker is not None:
        raise ConfigurationError("the broker is given twice: as URL and as brokerServiceUrl", key="brokerServiceUrl")
    named = broker is not None or service is not None or not _WEB.isdisjoint((*source, *options))
    url = str(service) if service is not None else None if named else environ.get(ENVIRON_URL) or None
    if url is not None:
        broker, below = split_url(url)
        source = below | source
    if _is_embedded(broker, source, options):
        source.pop("enableTransaction", None)  # it has transactions anyway
    groups = _groups(source)
    client = dict(take_group(source, "client") or {})
    values: dict[str, object] = {}
    _fill(values, client, flatten(source))
    _overlay(values, client, options)
    _browser_limit(values, environ)
    _place(values, broker)
    arguments: dict[str, Any] = values
    return Configuration(
        client=client,
        producer=_producer(groups["producer"], options.get("producer")),
        consumer=_consumer(groups["consumer"], options.get("consumer")),
        **arguments,
    )


def _read(config: object) -> tuple[dict[str, object], Broker | None]:
    """Options and broker of the first argument."""
    if config is None:
        return {}, None
    if isinstance(config, str):
        if is_url(config):
            broker, options = split_url(config)
            return options, broker
        return read_file(pathlib.Path(config)), None
    if isinstance(config, Mapping):
        flatten(config)  # refuses names that are not text, also the nested ones
        return dict(config), None
    if isinstance(config, os.PathLike):
        return read_file(pathlib.Path(config)), None
    raise ConfigurationError(f"config must be a URL, a map or a path, not {type(config).__name__}", key="config")


def _fill(values: dict[str, object], client: dict[str, object], source: Mapping[str, object]) -> None:
    """Read the written top-level options into ``values`` and those of pulsar-client into ``client``."""
    for name, value in source.items():
        option, own = _ALL.find(name)
        read = given(option, value) if own else written(option, value)
        if not option.field:
            continue
        target = client if option in CLIENT_OPTIONS.options else values
        if option.field in target:
            raise ConfigurationError(f"option {option.name} is given twice, also as {option.field}", key=option.name)
        target[option.field] = read


def _is_embedded(broker: Broker | None, source: Mapping[str, object], options: Mapping[str, object]) -> bool:
    if broker is not None:
        return broker.scheme == "memory"
    return _WEB.isdisjoint((*source, *options))


def _groups(source: dict[str, object]) -> dict[str, Mapping[str, object]]:
    """Take ``producerConfig`` and ``consumerConfig`` out of ``source``, under the names of their fields."""
    groups: dict[str, Mapping[str, object]] = {}
    for key, field in _GROUPS.items():
        written_group, own = take_group(source, key), take_group(source, field)
        if own is not None and written_group is not None:
            raise ConfigurationError(f"option {key} is given twice, also as {field}", key=key)
        groups[field] = own or written_group or {}
    return groups


def _overlay(values: dict[str, object], client: dict[str, object], options: Mapping[str, object]) -> None:
    """Lay keyword options over what was written."""
    for name, value in options.items():
        if name in _GROUPS.values():
            continue
        if name == "client":
            client.update(as_map(value, "option client"))
            continue
        option = _FIELDS.get(name) or _unknown(name)
        (client if option in CLIENT_OPTIONS.options else values)[option.field] = given(option, value)


def _unknown(name: str) -> NoReturn:
    """Refuse the keyword ``name``, with the field that is meant."""
    written_names = {option.name: option.field for option in _ALL.options}
    hint = f"; did you mean {written_names[name]!r}?" if written_names.get(name) else nearest(name, _FIELDS)
    raise ConfigurationError(f"unknown option {name!r}{hint}", key=name)


def _browser_limit(values: dict[str, object], environ: Mapping[str, str]) -> None:
    """The browser's limit from the environment when no option gives it; text that is no integer counts as 0."""
    text = environ.get(ENVIRON_BROWSER, "").strip()
    if "queue_browser_read_max" in values or not text:
        return
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) < 20 and abs(int(text)) < 2**31:  # an int of Java
        values["queue_browser_read_max"] = int(text)
    else:
        values["ignored"] = (f"${ENVIRON_BROWSER} = {text[:40]!r} is not an integer: it counts as 0, no limit",)


def _place(values: dict[str, object], broker: Broker | None) -> None:
    """Settle where the broker is: as named, else looked up over its REST interface, else in memory."""
    web = values.pop("web_service_url", None)
    web_url = None if web is None else check_web_url(str(web))
    if broker is None and web_url is not None:
        broker = parse_broker(web_url)
    values["fallback"] = broker is None
    broker = broker or Broker("memory", "", "memory:", "")
    values["scheme"], values["broker_name"] = broker.scheme, broker.broker_name
    values["service_url"] = broker.service_url
    values["web_service_url"] = broker.web_service_url if web_url is None else web_url


def _producer(group: Mapping[str, object], option: object) -> ProducerConfig:
    if isinstance(option, ProducerConfig):
        return option
    base = ProducerConfig().merge(group)
    return base if option is None else base.merge(as_map(option, "option producer"))


def _consumer(group: Mapping[str, object], option: object) -> ConsumerConfig:
    if isinstance(option, ConsumerConfig):
        return option
    base = ConsumerConfig().merge(group)
    return base if option is None else base.merge(as_map(option, "option consumer"))
