"""Broker URLs, and the registry of transports: one row for each scheme.

A row defines how URLs of that scheme are parsed and which transports open them. To add a transport, write its package
against ``jmsaio/transport/base.py`` and name it in the rows here. Nothing else in jmsaio names a transport, except the
``transports`` of options that have an effect only on some of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from urllib.parse import unquote_plus

import attrs

from jmsaio.config.options import nearest
from jmsaio.errors import ConfigurationError
from jmsaio.model.arguments import brief, shown

#: A text without a scheme that holds no secret.
HOST_PORT = re.compile(r"[\w.-]+:\d{1,5}")
#: The transport that the URL and ``enableTransaction`` choose.
AUTO = "auto"


@attrs.frozen
class BrokerAddress:
    """The address of a broker: its URL with every port and without options, and the URL of its REST interface."""

    scheme: str
    broker_name: str
    service_url: str
    web_service_url: str


@attrs.frozen
class TransportEntry:
    """A transport, as the registry knows it; ``module``, which has ``open_transport``, is imported at first use.

    ``transactions``: it has the broker's, which ``enableTransaction`` asks for. ``needs``: a module of another
    distribution without which it can't work.
    """

    name: str
    module: str
    transactions: bool = False
    needs: str = ""

    @property
    def installed(self) -> bool:
        """Whether what it needs is there; nothing is imported."""
        return not self.needs or find_spec(self.needs) is not None


@attrs.frozen
class Scheme:
    """A scheme of a broker URL.

    ``read`` parses the text after ``scheme:``, which raises ConfigurationError. ``example`` is one for errors, if not
    "". ``in_process``: no other process can reach the broker; the scheme alone is then a URL. ``implied``: options that
    the scheme fulfils, on each of its transports.
    """

    name: str
    transports: tuple[TransportEntry, ...]
    read: Callable[[str], BrokerAddress]
    example: str = ""
    in_process: bool = False
    implied: frozenset[str] = frozenset()

    def transport(self, name: str, transactions: bool) -> TransportEntry:
        """Return its transport of that name; for ``auto`` the first one that is installed, or else the first one.

        ``transactions``: ``auto`` prefers those with transactions.
        """
        if name == AUTO:
            able = [each for each in self.transports if each.transactions or not transactions] or self.transports
            return next((each for each in able if each.installed), able[0])
        found = {each.name: each for each in self.transports}
        if self.in_process:
            reason = f"{self.name}: is a broker in this process, without a choice of transports; leave the option out"
        elif name in found:
            return found[name]
        else:
            reason = f"{self.name}:// URLs take {' or '.join(found)}"
        raise ConfigurationError(f"option transport = {shown(name)}: {reason}", key="transport")


def _embedded(scheme: str) -> Callable[[str], BrokerAddress]:
    def read(rest: str) -> BrokerAddress:
        name = rest.removeprefix("//").rstrip("/")
        if (rest and not rest.startswith("//")) or "/" in name or "," in name:
            reason = f"this is not the URL of an embedded broker; write {scheme}: or {scheme}://name"
            raise ConfigurationError(reason, key="brokerServiceUrl")
        return BrokerAddress(scheme, name, f"{scheme}://{name}" if name else f"{scheme}:", "")

    return read


def _cluster(written: str, port: int, scheme: str, web: str | None = None) -> Callable[[str], BrokerAddress]:
    """Return a parser for ``written://host:port,host:port``.

    ``scheme`` is that of the configuration, ``web`` that of the REST interface on the first host; None: the URL names
    it.
    """

    def read(place: str) -> BrokerAddress:
        if not place.startswith("//"):
            raise ConfigurationError(f"a broker URL needs '//' after {written}:", key="brokerServiceUrl")
        hosts, slash, path = place[2:].partition("/")
        if slash and path:
            hint = "name the namespace with jms.systemNamespace=tenant/namespace"
            reason = f"broker URL {written}://{hosts}/... has a path; {hint}"
            raise ConfigurationError(reason, key="brokerServiceUrl")
        places = [_host_port(each, port) for each in hosts.split(",")]
        service_url = f"{written}://" + ",".join(f"{host}:{number}" for host, number in places)
        rest = service_url if web is None else f"{web}://{places[0][0]}:{WEB_PORTS[web]}"
        return BrokerAddress(scheme, "", service_url, rest)

    return read


def _host_port(place: str, default_port: int) -> tuple[str, int]:
    host, port = place, str(default_port)
    if place.startswith("["):  # IPv6
        host, bracket, tail = place.partition("]")
        host += bracket
        port = tail[1:] if tail.startswith(":") else port
    elif ":" in place:
        host, _, port = place.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        known = place if port.isdigit() else f"{host}:..."  # the rest can be a secret
        raise ConfigurationError(f"broker URL: {shown(known)} is not host:port", key="brokerServiceUrl")
    return host, int(port)


#: Pulsar's default ports of the REST interface, by its scheme.
WEB_PORTS = {"http": 8080, "https": 8443}
_MEMORY = TransportEntry("memory", "jmsaio.transport.memory", transactions=True)
_PULSAR = (
    TransportEntry("pulsar-client", "jmsaio.transport.pulsar", needs="_pulsar"),
    TransportEntry("wire", "jmsaio.transport.pulsar", transactions=True),
)
_TLS = frozenset({"useTls"})

#: The registry. The first row is the default broker.
SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("memory", (_MEMORY,), _embedded("memory"), "memory:", True, _TLS),
        Scheme("pulsar", _PULSAR, _cluster("pulsar", 6650, "pulsar", web="http"), "pulsar://host:6650"),
        Scheme(
            "pulsar+ssl",
            _PULSAR,
            _cluster("pulsar+ssl", 6651, "pulsar+ssl", web="https"),
            "pulsar+ssl://host:6651",
            implied=_TLS,
        ),
        Scheme("http", _PULSAR, _cluster("http", WEB_PORTS["http"], "pulsar")),
        Scheme("https", _PULSAR, _cluster("https", WEB_PORTS["https"], "pulsar+ssl"), implied=_TLS),
    )
}


def default_broker() -> BrokerAddress:
    return next(iter(SCHEMES.values())).read("")


def is_url(text: str) -> bool:
    scheme = SCHEMES.get(text.partition(":")[0])
    return "://" in text or (scheme is not None and scheme.in_process)


def split_url(text: str) -> tuple[BrokerAddress, dict[str, object]]:
    """Parse a URL such as ``pulsar://host:6650,other:6650?jms.clientId=billing`` into broker and options.

    The last value of a repeated name counts, as in Starlight. Errors show neither the query nor credentials.
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
            raise ConfigurationError(f"option {shown(known)} in the URL has no '=' and value", key=known)
        options[name] = unquote_plus(value)
    return parse_broker(base), options


def parse_broker(base: str) -> BrokerAddress:
    if "@" in base:
        reason = "credentials don't belong in the broker URL; give authPlugin and authParams as options"
        raise ConfigurationError(reason, key="brokerServiceUrl")
    scheme, colon, rest = base.partition(":")
    scheme = scheme.lower()
    if scheme in SCHEMES and (colon or SCHEMES[scheme].in_process):
        return SCHEMES[scheme].read(rest)
    *others, last = (each.example for each in SCHEMES.values() if each.example)
    if all(HOST_PORT.fullmatch(host) for host in base.removesuffix("/").split(",")):
        why = f"{shown(base)} is not a URL: write pulsar://{brief(base)}, or pulsar+ssl:// for TLS"
        raise ConfigurationError(why, key="brokerServiceUrl")
    given = f"{brief(scheme)}://..." if colon else shown(base)  # the rest can be a secret
    known = f"{nearest(scheme, SCHEMES)}; write {', '.join(others)} or {last}"
    raise ConfigurationError(f"{given} is not a broker URL that jmsaio supports{known}", key="brokerServiceUrl")


def check_web_url(text: str) -> str:
    if not text.startswith(("http://", "https://")) or "@" in text:
        reason = "option webServiceUrl: must be http://host:port or https://host:port, without credentials"
        raise ConfigurationError(reason, key="webServiceUrl")
    return text.rstrip("/")
