"""``load``: creates a ``Configuration`` from a URL, a map, a file, the environment and keyword options.

A keyword is the name of a field of ``Configuration``, ``ProducerConfig`` or ``ConsumerConfig``, unless both of the
latter have a field of that name.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Unpack

import attrs

from jmsaio.config.configuration import Configuration
from jmsaio.config.connect_options import FactoryOptions
from jmsaio.config.declaring import (
    SectionField,
    directory,
    flatten,
    groups,
    pop_group,
    pop_value,
    read_section,
    written_names,
)
from jmsaio.config.options import Directory, Option, Section, Status, given, hint, nearest_name, written
from jmsaio.config.schemes import (
    HOST_PORT,
    SCHEMES,
    BrokerAddress,
    check_web_url,
    default_broker,
    is_url,
    parse_broker,
    split_url,
)
from jmsaio.config.sections import ConsumerConfig, ProducerConfig
from jmsaio.errors import ConfigurationError
from jmsaio.model.arguments import shown

#: Environment variables: the default broker, and the default limit of a browser.
ENVIRON_URL = "JMSAIO_URL"
ENVIRON_BROWSER = "JMSAIO_QUEUE_BROWSER_READ_MAX"

#: Characters that can precede a secret in a URL without its scheme.
_SECRET = re.compile("[:@]")
_GROUPS = groups(Configuration)
#: The fields of ``Configuration`` that hold a section whose options are keywords without a map.
_HOLDERS = {each.section: field for field, each in _GROUPS.items()}
_WEB = frozenset({"webServiceUrl", "web_service_url"})
#: Written names of the options without an effect.
_IDLE = tuple(
    each.name for section in Section for each in directory(section).options if each.status is Status.NO_EFFECT
)
#: Written prefixes of the sections, by the prefix that uses their keyword.
_PREFIXES = {f"{field}.": each.section.value for field, each in _GROUPS.items()} | {
    f"{Section.CONSUMER.value}{field}.": each.section.value for field, each in groups(ConsumerConfig).items()
}


def _fields_of(section: Section, kind: type) -> dict[str, Option | SectionField]:
    options = {option.field: option for option in directory(section).options if option.field}
    return {**options, **groups(kind)}


_PRODUCER, _CONSUMER = _fields_of(Section.PRODUCER, ProducerConfig), _fields_of(Section.CONSUMER, ConsumerConfig)
_AMBIGUOUS = _PRODUCER.keys() & _CONSUMER.keys()
#: Keywords with what they set, an option or a whole section, in order of declaration.
KEYWORDS = {
    name: declared
    for name, declared in (_fields_of(Section.CONNECTION, Configuration) | _PRODUCER | _CONSUMER).items()
    if name not in _AMBIGUOUS
}
_TOP = Directory(directory(Section.CONNECTION).options, others=lambda: [*KEYWORDS, *written_names()])


def find_keyword(name: str) -> Option | SectionField:
    """Return what a keyword sets; raise ConfigurationError for one that is unknown or ambiguous, with what to write."""
    _check_unambiguous(name)
    declared = KEYWORDS.get(name)
    if declared is None:
        raise ConfigurationError(f"unknown option {shown(name)}{_hint(name)}", key=name)
    return declared


def _check_unambiguous(name: str) -> None:
    if name in _AMBIGUOUS:
        ways = " or ".join(f"{field}={{{name!r}: ...}}" for field in _GROUPS)
        raise ConfigurationError(f"option {shown(name)} belongs to more than one section; give {ways}", key=name)


def _hint(name: str) -> str:
    """Suggest a keyword for ``name``, which can be a written name or belong to a section without keywords."""
    meant = {keyword: repr(keyword) for keyword in KEYWORDS}
    for keyword, declared in KEYWORDS.items():
        if isinstance(declared, Option):
            meant.setdefault(declared.name, repr(keyword))
            continue
        meant.setdefault(declared.key, repr(keyword))
        if declared.holder is Section.CONSUMER:
            for option in (each for each in directory(declared.section).options if each.field):
                way = f"{keyword}={{{shown(option.field)}: ...}}"
                meant.setdefault(option.field, way)
                meant.setdefault(option.name, way)
    return hint(meant.get(nearest_name(name, meant), ""))


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
    values: dict[str, Any] = {"without_effect": without_effect(source, keywords), **_written_values(source)}
    _overlay(values, keywords)
    _browser_limit(values, environ)
    _place(values, broker)
    return Configuration(**values)


def _read(config: object) -> tuple[dict[str, object], BrokerAddress | None]:
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


def _written_values(source: dict[str, object]) -> dict[str, Any]:
    sections: dict[str, dict[str, object]] = {}
    for field, each in _GROUPS.items():
        found = pop_value(source, each)
        sections[field] = {} if found is None else as_map(found, f"option {field}", field)
    for name in flatten(source):
        _check_unambiguous(name.partition(".")[0])
    for name in dict.fromkeys(name.partition(".")[0] for name in source):
        declared = KEYWORDS.get(name)
        holder = None if declared is None else _HOLDERS.get(declared.holder)
        if holder is None:
            continue
        is_map = isinstance(source.get(name, {}), Mapping)
        value = pop_group(source, name) if is_map else source.pop(name)
        if value is not None:
            if name in sections[holder]:
                raise _twice(name, holder)
            sections[holder][name] = value
    return read_section(Section.CONNECTION, source | sections, directory=_TOP)


def _named_by_web(source: Mapping[str, object], keywords: Mapping[str, object]) -> BrokerAddress:
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
    maps = {field: value for field in _GROUPS if isinstance(value := keywords.get(field), Mapping)}
    names = [*flatten(source), *flatten(maps)]
    for prefix, section in _PREFIXES.items():
        names = [section + name.removeprefix(prefix) if name.startswith(prefix) else name for name in names]
    # A name begins with an option's if that is all of its first parts; no option has more than three.
    begun = {".".join(parts[:depth]) for parts in (name.split(".", 3) for name in names) for depth in (1, 2, 3)}
    return tuple(idle for idle in _IDLE if idle in begun)


def _overlay(values: dict[str, Any], keywords: dict[str, object]) -> None:
    """Override written options with keyword options.

    An object given for a section replaces its written options, a map and single keywords override them.
    """
    whole = {field: keywords.pop(field, None) for field in _GROUPS}
    single: dict[str, dict[str, Any]] = {field: {} for field in _GROUPS}
    for name, value in keywords.items():
        declared = find_keyword(name)
        if declared.holder in _HOLDERS:
            single[_HOLDERS[declared.holder]][name] = value
        else:
            assert isinstance(declared, Option)  # the two sections are not among these keywords
            values[name] = given(declared, value)
    for field, each in _GROUPS.items():
        base, value = values[field], whole[field]
        changes: dict[str, Any] = {}
        if isinstance(value, each.kind):
            base = value
        elif value is not None:
            changes = base.changes(as_map(value, f"option {field}", field))
            for name in changes.keys() & single[field].keys():
                raise _twice(name, field)
        values[field] = attrs.evolve(base, **changes, **single[field])


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


def _twice(name: str, field: str) -> ConfigurationError:
    return ConfigurationError(f"option {name} is given twice, also in {field}", key=name)


def read_file(path: pathlib.Path) -> dict[str, object]:
    """Read options from a JSON file, or from a TOML file if its name ends in ``.toml``; raises ConfigurationError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        name = str(path).partition("?")[0]
        if _SECRET.search(name) and not HOST_PORT.fullmatch(name):
            name = "..."
        reason = getattr(error, "strerror", None) or type(error).__name__
        is_file = "." in path.name and ":" not in path.name
        meant = "" if is_file else "; is it meant as a URL, such as pulsar://host:6650?"
        raise ConfigurationError(f"can't read configuration file {shown(name)}: {reason}{meant}") from None
    try:
        data = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except ValueError as error:  # of both parsers; its text shows a position, not the content
        raise ConfigurationError(f"configuration file {shown(str(path))}: {error}") from None
    return as_map(data, f"configuration file {shown(str(path))}")


def as_map(data: object, what: str, key: str | None = None) -> dict[str, object]:
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"{what} must be a map of options, not {type(data).__name__}", key=key)
    return dict(data)
