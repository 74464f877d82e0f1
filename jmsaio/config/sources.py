"""Where options are written: a broker URL with a query, a file in JSON or TOML. Nothing here knows a single option."""

from __future__ import annotations

import json
import pathlib
import re
import tomllib
from collections.abc import Mapping
from urllib.parse import unquote_plus

import attrs

from jmsaio.config.configuration import SCHEMES
from jmsaio.config.options import nearest
from jmsaio.errors import ConfigurationError

#: What may have a secret behind it, in a URL without its scheme; and what has none.
_SECRET = re.compile("[:@]")
_HOST_PORT = re.compile(r"[\w.-]+:\d{1,5}")


@attrs.frozen
class Broker:
    """Where the broker is.

    Attributes:
        scheme: as in ``Configuration``.
        broker_name: as in ``Configuration``.
        service_url: the URL with every port and without options.
        web_service_url: the REST interface that belongs to it by default.
    """

    scheme: str
    broker_name: str
    service_url: str
    web_service_url: str


def is_url(text: str) -> bool:
    """True for a text that is meant as a URL and not as the name of a file."""
    return "://" in text or text == "memory" or text.startswith("memory:")


def split_url(text: str) -> tuple[Broker, dict[str, object]]:
    """Broker and options of ``text``, such as ``pulsar://host:6650,other:6650?jms.clientId=billing``.

    Names and values are URL-decoded ("+" is a blank); of a name given twice the last counts, as in Starlight.

    Raises:
        ConfigurationError: not a broker URL. The text shows neither the query nor credentials.
    """
    base, _, query = text.strip().partition("?")
    base = base.partition("#")[0]
    options: dict[str, object] = {}
    for pair in query.split("&"):
        name, equals, value = pair.partition("=")
        name = unquote_plus(name)
        if not pair:
            continue
        if not equals or not name:
            known = name.partition(":")[0]
            raise ConfigurationError(f"option {known!r} in the URL has no '=' and value", key=known)
        options[name] = unquote_plus(value)
    return parse_broker(base), options


def parse_broker(base: str) -> Broker:
    """Broker named by a URL without a query.

    Raises:
        ConfigurationError: not a broker URL.
    """
    if "@" in base:
        reason = "credentials don't belong in the broker URL; give authPlugin and authParams as options"
        raise ConfigurationError(reason, key="brokerServiceUrl")
    scheme, colon, rest = base.partition(":")
    scheme = scheme.lower()
    if scheme == "memory":
        return _memory(rest)
    if not colon or scheme not in SCHEMES:
        known = "memory:, pulsar://host:6650 or pulsar+ssl://host:6651"
        shown = f"{scheme}://..." if colon else repr(base)  # what stands behind may be a secret, here and below
        reason = f"{shown} is not a broker URL that jmsaio knows{nearest(scheme, SCHEMES)}; write {known}"
        raise ConfigurationError(reason, key="brokerServiceUrl")
    if not rest.startswith("//"):
        raise ConfigurationError(f"a broker URL needs '//' behind {scheme}:", key="brokerServiceUrl")
    hosts, slash, path = rest[2:].partition("/")
    if slash and path:
        hint = "name the namespace with jms.systemNamespace=tenant/namespace"
        reason = f"broker URL {scheme}://{hosts}/... has a path; {hint}"
        raise ConfigurationError(reason, key="brokerServiceUrl")
    places = [_host_port(place, SCHEMES[scheme]) for place in hosts.split(",")]
    service_url = f"{scheme}://" + ",".join(f"{host}:{port}" for host, port in places)
    if scheme in ("http", "https"):
        return Broker("pulsar" if scheme == "http" else "pulsar+ssl", "", service_url, service_url)
    web = "http" if scheme == "pulsar" else "https"
    return Broker(scheme, "", service_url, f"{web}://{places[0][0]}:8080")


def _memory(rest: str) -> Broker:
    name = rest.removeprefix("//").rstrip("/")
    if (rest and not rest.startswith("//")) or "/" in name or "," in name:
        reason = "this is not the URL of an embedded broker; write memory: or memory://name"
        raise ConfigurationError(reason, key="brokerServiceUrl")
    return Broker("memory", name, f"memory://{name}" if name else "memory:", "")


def _host_port(place: str, default_port: int) -> tuple[str, int]:
    host, port = place, str(default_port)
    if place.startswith("["):  # IPv6
        host, bracket, tail = place.partition("]")
        host += bracket
        port = tail[1:] if tail.startswith(":") else port
    elif ":" in place:
        host, _, port = place.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        shown = place if port.isdigit() else f"{host}:..."
        raise ConfigurationError(f"broker URL: {shown!r} is not host:port", key="brokerServiceUrl")
    return host, int(port)


def check_web_url(text: str) -> str:
    """The REST interface's base URL without a slash at its end.

    Raises:
        ConfigurationError: not an http or https URL.
    """
    if not text.startswith(("http://", "https://")) or "@" in text:
        reason = "option webServiceUrl: must be http://host:port or https://host:port, without credentials"
        raise ConfigurationError(reason, key="webServiceUrl")
    return text.rstrip("/")


def read_file(path: pathlib.Path) -> dict[str, object]:
    """Options from a JSON file, or from a TOML file when its name ends in ``.toml``.

    Raises:
        ConfigurationError: the file can't be read, or is no map of options.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        name = str(path).partition("?")[0]
        if _SECRET.search(name) and not _HOST_PORT.fullmatch(name):
            name = "..."
        hint = (
            "" if "." in path.name and ":" not in path.name else "; is it meant as a URL, such as pulsar://host:6650?"
        )
        raise ConfigurationError(f"can't read configuration file {name!r}: {_reason(error)}{hint}") from None
    try:
        data = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except ValueError as error:  # of both languages; the text shows a position, not the content
        raise ConfigurationError(f"configuration file {str(path)!r}: {error}") from None
    return as_map(data, f"configuration file {str(path)!r}")


def as_map(data: object, what: str) -> dict[str, object]:
    """``data`` as a map of options; raises ConfigurationError when it is none."""
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"{what} must be a map of options, not {type(data).__name__}")
    return dict(data)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__
