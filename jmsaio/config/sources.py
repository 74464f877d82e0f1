"""Reads options from a broker URL with a query and from JSON or TOML files, without interpreting them."""

from __future__ import annotations

import json
import pathlib
import re
import tomllib
from collections.abc import Mapping
from urllib.parse import unquote_plus

from jmsaio.config.options import nearest
from jmsaio.config.schemes import SCHEMES, BrokerAddress
from jmsaio.errors import ConfigurationError
from jmsaio.model.arguments import brief, shown

#: Characters that can precede a secret in a URL without its scheme.
_SECRET = re.compile("[:@]")
#: Text with such a character that holds no secret.
_HOST_PORT = re.compile(r"[\w.-]+:\d{1,5}")


def is_url(text: str) -> bool:
    """Return whether a text is a URL rather than a file name."""
    scheme = SCHEMES.get(text.partition(":")[0])
    return "://" in text or (scheme is not None and scheme.in_process)


def split_url(text: str) -> tuple[BrokerAddress, dict[str, object]]:
    """Parse a URL such as ``pulsar://host:6650,other:6650?jms.clientId=billing`` into broker and options.

    Names and values are URL-decoded ("+" is a space); the last value of a repeated name counts, as in Starlight.

    Raises:
        ConfigurationError: ``text`` is not a broker URL. The error shows neither the query nor credentials.
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
    """Parse a broker URL without a query.

    Raises:
        ConfigurationError: ``base`` is not a broker URL.
    """
    if "@" in base:
        reason = "credentials don't belong in the broker URL; give authPlugin and authParams as options"
        raise ConfigurationError(reason, key="brokerServiceUrl")
    scheme, colon, rest = base.partition(":")
    scheme = scheme.lower()
    if scheme in SCHEMES and (colon or SCHEMES[scheme].in_process):
        return SCHEMES[scheme].read(rest)
    *others, last = (each.example for each in SCHEMES.values() if each.example)
    if all(_HOST_PORT.fullmatch(host) for host in base.removesuffix("/").split(",")):
        why = f"{shown(base)} is not a URL: write pulsar://{brief(base)}, or pulsar+ssl:// for TLS"
        raise ConfigurationError(why, key="brokerServiceUrl")
    given = f"{brief(scheme)}://..." if colon else shown(base)  # the rest can be a secret
    known = f"{nearest(scheme, SCHEMES)}; write {', '.join(others)} or {last}"
    raise ConfigurationError(f"{given} is not a broker URL that jmsaio supports{known}", key="brokerServiceUrl")


def check_web_url(text: str) -> str:
    """Return the REST interface's base URL without a trailing slash.

    Raises:
        ConfigurationError: ``text`` is not an http or https URL, or has credentials.
    """
    if not text.startswith(("http://", "https://")) or "@" in text:
        reason = "option webServiceUrl: must be http://host:port or https://host:port, without credentials"
        raise ConfigurationError(reason, key="webServiceUrl")
    return text.rstrip("/")


def read_file(path: pathlib.Path) -> dict[str, object]:
    """Read options from a JSON file, or from a TOML file if its name ends in ``.toml``.

    Raises:
        ConfigurationError: the file can't be read, or does not contain a map of options.
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
        raise ConfigurationError(f"can't read configuration file {shown(name)}: {_reason(error)}{hint}") from None
    try:
        data = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except ValueError as error:  # of both parsers; its text shows a position, not the content
        raise ConfigurationError(f"configuration file {shown(str(path))}: {error}") from None
    return as_map(data, f"configuration file {shown(str(path))}")


def as_map(data: object, what: str) -> dict[str, object]:
    """Return ``data`` as a dict of options; raises ConfigurationError if it is not a map."""
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"{what} must be a map of options, not {type(data).__name__}")
    return dict(data)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__
