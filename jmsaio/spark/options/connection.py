"""Connection options: those of ``jmsaio.connect`` by their written names, in any case, since Spark changes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jmsaio.config import Configuration, load
from jmsaio.config.declaring import directory, written_names
from jmsaio.config.options import Kind, Section
from jmsaio.config.schemes import SCHEMES
from jmsaio.config.sources import split_url
from jmsaio.spark.options.secrets import SECRETS, check_secret, is_reference
from jmsaio.spark.options.values import refuse

#: Name of the option ``url`` in ``load``.
_URL: Final = "brokerServiceUrl"
_OPTIONS: Final = {option.name: option for section in Section for option in directory(section).options}
_WRITTEN: Final = {name.lower(): name for name in written_names() if name != _URL}
#: Prefixes of names whose rest the user chooses; Spark has converted it to lower case.
_MAPS: Final = tuple(f"{name}." for name, option in _OPTIONS.items() if option.kind is Kind.MAP)


def written_name(name: str) -> str | None:
    """Return the spelling of an option's name in ``jmsaio.config``, given in any case; None for an unknown option."""
    for start in _MAPS:
        if name.lower().startswith(start.lower()):
            return start + name[len(start) :]
    return _WRITTEN.get(name.lower())


def connection_names() -> list[str]:
    """Return the written names of all connection options."""
    return list(_WRITTEN.values())


def split_options(url: str) -> tuple[str, dict[str, str]]:
    """Split off the options that follow the broker's URL.

    Raises:
        ConfigurationError: the URL is invalid, or names an embedded broker, which the tasks can't reach.
    """
    broker, options = split_url(url)
    if SCHEMES[broker.scheme].in_process:
        reason = (
            "the embedded broker is out of reach for Spark's tasks, which run in other processes; start a broker with "
            "`jmsaio broker start` and give its URL"
        )
        raise refuse("url", broker.service_url, reason)
    base = url.strip().partition("?")[0].partition("#")[0]
    return base, {name: str(value) for name, value in options.items()}


def check_connection(url: str, options: Mapping[str, str], *, inline: bool) -> tuple[dict[str, str], Configuration]:
    """Check the connection options; return the input of ``load``, with references to secrets, and its result.

    Args:
        url: the broker's URL, without options.
        options: options by their written names.
        inline: accept secrets in the text of an option.

    Raises:
        ConfigurationError: an option is invalid, or contains a secret that is not allowed there.
    """
    connection = {_URL: url, **options}
    for name in SECRETS:
        if name in connection:
            check_secret(name, connection[name], connection.get("authPlugin"), allowed=inline)
    return connection, load(connection)


def shown_connection(connection: Mapping[str, str]) -> str:
    """Return the options for ``repr``: secrets as ``***``, references unchanged."""
    return repr({name: "***" if _is_hidden(name, text) else text for name, text in connection.items()})


def _is_hidden(name: str, text: str) -> bool:
    option = _OPTIONS.get(name)
    return name.startswith(_MAPS) or (option is not None and option.secret and not is_reference(text))
