"""``load``: creates a ``Configuration`` from a URL, a map, a file, the environment and keyword options."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping
from typing import Any, TypeVar, Unpack

import attrs

from jmsaio.config.configuration import Configuration
from jmsaio.config.connect_options import FactoryOptions
from jmsaio.config.consumer import ConsumerConfig
from jmsaio.config.declaring import directory, groups, written_names
from jmsaio.config.keywords import KEYWORDS, check_unambiguous, find_keyword
from jmsaio.config.mapping import flatten, take_group
from jmsaio.config.options import Directory, Kind, Option, Section, Status
from jmsaio.config.producer import ProducerConfig
from jmsaio.config.schemes import SCHEMES, BrokerAddress, default_broker
from jmsaio.config.sources import as_map, check_web_url, is_url, parse_broker, read_file, split_url
from jmsaio.config.values import given, written
from jmsaio.errors import ConfigurationError
from jmsaio.model.arguments import shown

Held = TypeVar("Held", ProducerConfig, ConsumerConfig)

#: Environment variables: the default broker, and the default limit of a browser.
ENVIRON_URL = "JMSAIO_URL"
ENVIRON_BROWSER = "JMSAIO_QUEUE_BROWSER_READ_MAX"

_TOP = Directory(
    (*directory(Section.CONNECTION).options, *directory(Section.CLIENT).options),
    others=lambda: [*KEYWORDS, *written_names()],
)
_GROUPS = groups(Configuration)
_WEB = frozenset({"webServiceUrl", "web_service_url"})
#: Written names of the options without an effect.
_IDLE = tuple(
    each.name for section in Section for each in directory(section).options if each.status is Status.NO_EFFECT
)
#: Written prefixes of the sections, by the prefix that uses their keyword.
_PREFIXES = {f"{field}.": each.section.value for field, each in _GROUPS.items()} | {
    f"{Section.CONSUMER.value}{field}.": each.section.value for field, each in groups(ConsumerConfig).items()
}


@attrs.define
class _Parts:
    """The given options, by the object that holds them.

    Attributes:
        values: values of fields of ``Configuration``.
        client: settings of Pulsar's clients.
        written: unparsed maps for ``producer`` and ``consumer``.
        flat: keywords of ``producer`` and ``consumer`` that were given without a map.
    """

    values: dict[str, Any] = attrs.field(factory=dict)
    client: dict[str, object] = attrs.field(factory=dict)
    written: dict[str, dict[str, object]] = attrs.field(factory=dict)
    flat: dict[str, dict[str, Any]] = attrs.field(factory=lambda: {field: {} for field in _GROUPS})


def load(
    config: str | Mapping[str, object] | os.PathLike[str] | None = None,
    /,
    environ: Mapping[str, str] = {},  # only read
    **options: Unpack[FactoryOptions],
) -> Configuration:
    """Read a configuration.

    Args:
        config: a URL (``memory:``, ``pulsar://host:6650?jms.clientId=billing``), Starlight's map of options, the path
            of a JSON or TOML file with such a map, or None: ``$JMSAIO_URL``, else the embedded broker.
        environ: the environment, of which only the variables of the configuration guide are read.
        options: keyword options, which override ``config``: fields of ``Configuration``, ``ProducerConfig`` and
            ``ConsumerConfig`` by name. Durations are seconds or timedelta.

    Raises:
        ConfigurationError: an option is unknown (the error suggests the nearest name), not built or given twice, or a
            value is invalid. Secrets are never shown.
    """
    keywords: dict[str, object] = dict(options)
    source, broker = _read(config)
    source, broker = _locate(source, broker, keywords, environ)
    used = broker or _named_by_web(source, keywords)
    scheme = SCHEMES[used.service_url.partition(":")[0]]
    for name in scheme.implied:
        source.pop(name, None)
    if written(_TOP.find("useTls")[0], source.pop("useTls", False)):
        broker = _by_tls(used)
    parts = _Parts(values={"without_effect": without_effect(source, keywords)})
    _take_written(parts, source)
    held = {field: keywords.pop(field, None) for field in _GROUPS}
    _overlay(parts, keywords)
    _browser_limit(parts.values, environ)
    _place(parts.values, broker)
    return Configuration(
        client=parts.client,
        producer=_hold(ProducerConfig(), parts, "producer", held["producer"]),
        consumer=_hold(ConsumerConfig(), parts, "consumer", held["consumer"]),
        **parts.values,
    )


def _read(config: object) -> tuple[dict[str, object], BrokerAddress | None]:
    """Return the options and the broker of the first argument."""
    if config is None:
        return {}, None
    if isinstance(config, str):
        if is_url(config):
            broker, options = split_url(config)
            return options, broker
        return read_file(pathlib.Path(config)), None
    if isinstance(config, Mapping):
        flatten(config)  # refuses names that are not text, including nested ones
        return dict(config), None
    if isinstance(config, os.PathLike):
        return read_file(pathlib.Path(config)), None
    raise ConfigurationError(f"config must be a URL, a map or a path, not {type(config).__name__}", key="config")


def _locate(
    source: dict[str, object], broker: BrokerAddress | None, keywords: dict[str, object], environ: Mapping[str, str]
) -> tuple[dict[str, object], BrokerAddress | None]:
    """Return the options without the broker's URL, and the broker; the environment supplies a missing URL."""
    service = keywords.pop("service_url", None)
    for name in ("brokerServiceUrl", "service_url"):
        service = source.pop(name, None) if service is None else service
    if service is not None and broker is not None:
        raise ConfigurationError("the broker is given twice: as URL and as brokerServiceUrl", key="brokerServiceUrl")
    by_web = not _WEB.isdisjoint((*source, *keywords))
    if service == "" and by_web:  # Starlight's default: the broker is looked up there
        service = None
    named = broker is not None or service is not None or by_web
    url = str(service) if service is not None else None if named else environ.get(ENVIRON_URL) or None
    if url is None:
        return source, broker
    broker, below = split_url(url)
    return below | source, broker


def _take_written(parts: _Parts, source: dict[str, object]) -> None:
    """Move the written options from ``source`` to ``parts``."""
    for field, each in _GROUPS.items():
        own, written_group = take_group(source, field), take_group(source, each.key)
        if own is not None and written_group is not None:
            raise ConfigurationError(f"option {each.key} is given twice, also as {field}", key=each.key)
        parts.written[field] = dict(own or written_group or {})
    parts.client = dict(take_group(source, "client") or {})
    _take_flat(parts, source)
    for option in (each for each in _TOP.options if each.kind is Kind.MAP):
        for name in filter(None, (option.key, option.field)):
            if given_map := take_group(source, name):
                read = written(option, flatten(given_map))
                if option.field:  # otherwise it is known by name only
                    parts.values[option.field] = read
    for name, value in flatten(source).items():
        check_unambiguous(name.partition(".")[0])
        option, own_name = _TOP.find(name)
        read = given(option, value) if own_name else written(option, value)
        if not option.field:
            continue
        target = parts.client if option.section is Section.CLIENT else parts.values
        if option.field in target:
            raise ConfigurationError(f"option {option.name} is given twice, also as {option.field}", key=option.name)
        target[option.field] = read


def _take_flat(parts: _Parts, source: dict[str, object]) -> None:
    """Move top-level keywords of ``producer`` and ``consumer`` into the maps of these two."""
    fields = {each.section: field for field, each in _GROUPS.items()}
    for name in {name.partition(".")[0] for name in source}:
        keyword = KEYWORDS.get(name)
        if keyword is None or keyword.section not in fields:
            continue
        field = fields[keyword.section]
        is_group = isinstance(source.get(name, {}), Mapping)
        value = take_group(source, name) if is_group else source.pop(name)
        if value is None:
            continue
        if name in parts.written[field]:
            raise _twice(name, field)
        parts.written[field][name] = value


def _named_by_web(source: Mapping[str, object], keywords: Mapping[str, object]) -> BrokerAddress:
    """Return the broker if no URL names it: the one of the REST interface, else the default one."""
    web = [given[name] for given in (keywords, source) for name in _WEB & given.keys()]
    return parse_broker(check_web_url(str(web[0]))) if web else default_broker()


def _by_tls(broker: BrokerAddress) -> BrokerAddress:
    """Return the broker with TLS at the same port: as in Java, ``useTls`` overrides the scheme of the URL."""
    scheme, _, hosts = broker.service_url.partition("://")
    if scheme != "pulsar":
        reason = f"option useTls = True: write https:// instead of {scheme}:// in front of the broker's host"
        raise ConfigurationError(reason, key="useTls")
    return parse_broker(f"pulsar+ssl://{hosts}")


def without_effect(source: Mapping[str, object], keywords: Mapping[str, object]) -> tuple[str, ...]:
    """Return the written names of the given options that have no effect."""
    maps = {field: value for field in _GROUPS if isinstance(value := keywords.get(field), Mapping)}
    names = [*flatten(source), *flatten(maps)]
    for prefix, section in _PREFIXES.items():
        names = [section + name.removeprefix(prefix) if name.startswith(prefix) else name for name in names]
    # A name begins with an option's if that is all of its first parts; no option has more than three.
    begun = {".".join(parts[:depth]) for parts in (name.split(".", 3) for name in names) for depth in (1, 2, 3)}
    return tuple(idle for idle in _IDLE if idle in begun)


def _overlay(parts: _Parts, keywords: Mapping[str, object]) -> None:
    """Override written options with keyword options."""
    fields = {each.section: field for field, each in _GROUPS.items()}
    for name, value in keywords.items():
        if name == "client":
            parts.client.update(as_map(value, "option client"))
            continue
        keyword = find_keyword(name)
        if keyword.section in fields:
            parts.flat[fields[keyword.section]][name] = value
        else:
            assert isinstance(keyword.declared, Option)  # the two groups are not among these keywords
            target = parts.client if keyword.section is Section.CLIENT else parts.values
            target[name] = given(keyword.declared, value)


def _browser_limit(values: dict[str, object], environ: Mapping[str, str]) -> None:
    """Read the browser's limit from the environment if no option sets it; anything but an integer counts as 0."""
    text = environ.get(ENVIRON_BROWSER, "").strip()
    if "queue_browser_read_max" in values or not text:
        return
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and len(digits) < 20 and abs(int(text)) < 2**31:  # a Java int
        values["queue_browser_read_max"] = int(text)
    else:
        values["ignored"] = (f"${ENVIRON_BROWSER} = {shown(text)} is not an integer: it counts as 0, no limit",)


def _place(values: dict[str, object], broker: BrokerAddress | None) -> None:
    """Set the broker's address: as named, else as looked up through the REST interface, else in memory."""
    web = values.pop("web_service_url", None)
    web_url = None if web is None else check_web_url(str(web))
    if broker is None and web_url is not None:
        broker = parse_broker(web_url)
    values["web_service_named"] = web_url is not None
    values["fallback"] = broker is None
    broker = broker or default_broker()
    values["scheme"], values["broker_name"] = broker.scheme, broker.broker_name
    values["service_url"] = broker.service_url
    values["web_service_url"] = broker.web_service_url if web_url is None else web_url


def _hold(base: Held, parts: _Parts, field: str, value: object) -> Held:
    """Create the value of ``producer`` or ``consumer`` from written options, its keyword and flat keywords.

    Args:
        base: the defaults.
        parts: the given options; flat keywords override written options.
        field: ``producer`` or ``consumer``.
        value: the value of its keyword: an object, which replaces all written options, a map, or None.
    """
    flat = parts.flat[field]
    if isinstance(value, type(base)):
        return attrs.evolve(value, **flat)
    base = base.merge(parts.written[field])
    changes = {} if value is None else base.changes(as_map(value, f"option {field}"))
    for name in changes.keys() & flat.keys():
        raise _twice(name, field)
    return attrs.evolve(base, **changes, **flat)


def _twice(name: str, field: str) -> ConfigurationError:
    return ConfigurationError(f"option {name} is given twice, also in {field}", key=name)
