"""Where options are written: a broker URL with a query, a file in JSON or TOML. Nothing here knows a single option."""

from __future__ import annotations

import json
import pathlib
import re
import tomllib
from collections.abc import Mapping
from urllib.parse import unquote_plus

from jmsaio.config.options import nearest
from jmsaio.config.schemes import SCHEMES, Broker
from jmsaio.errors import ConfigurationError

#: Characters that a secret may follow in a URL without its scheme, and text with one of them that holds no secret.
_SECRET = re.compile("[:@]")
_HOST_PORT = re.compile(r"[\w.-]+:\d{1,5}")


def is_url(text: str) -> bool:
    """True for text that is meant as a URL rather than a file name."""
    scheme = SCHEMES.get(text.partition(":")[0])
    return "://" in text or (scheme is not None and scheme.in_process)


def split_url(text: str) -> tuple[Broker, dict[str, object]]:
    """Broker and options of ``text``, such as ``pulsar://host:6650,other:6650?jms.clientId=billing``.

    Names and values are URL-decoded ("+" is a space); the last value of a repeated name counts, as in Starlight.

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
    if scheme in SCHEMES and (colon or SCHEMES[scheme].in_process):
        return SCHEMES[scheme].read(rest)
    *others, last = (each.example for each in SCHEMES.values() if each.example)
    shown = f"{scheme}://..." if colon else repr(base)  # what stands behind may be a secret
    known = f"{nearest(scheme, SCHEMES)}; write {', '.join(others)} or {last}"
    raise ConfigurationError(f"{shown} is not a broker URL that jmsaio knows{known}", key="brokerServiceUrl")


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
        ConfigurationError: the file can't be read, or does not hold a map of options.
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
    """``data`` as a map of options; raises ConfigurationError when it is not one."""
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"{what} must be a map of options, not {type(data).__name__}")
    return dict(data)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__
