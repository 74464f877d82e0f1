"""Connection options: those of ``jmsaio.connect`` by their written names, in any case, since Spark loses it."""

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

#: The option of ``load`` that is ``url`` here.
_URL: Final = "brokerServiceUrl"
_OPTIONS: Final = {option.name: option for section in Section for option in directory(section).options}
_WRITTEN: Final = {name.lower(): name for name in written_names() if name != _URL}
#: Beginnings of names whose rest the user chooses; Spark has put it into lower case.
_MAPS: Final = tuple(f"{name}." for name, option in _OPTIONS.items() if option.kind is Kind.MAP)


def written_name(name: str) -> str | None:
    """How ``jmsaio.config`` writes an option whose name is given in any case; None if it has none."""
    for start in _MAPS:
        if name.lower().startswith(start.lower()):
            return start + name[len(start) :]
    return _WRITTEN.get(name.lower())


def connection_names() -> list[str]:
    """The written names of all connection options."""
    return list(_WRITTEN.values())


def split_options(url: str) -> tuple[str, dict[str, str]]:
    """The broker's URL, and the options that follow it there.

    Raises:
        ConfigurationError: it is no broker URL, or one of a broker in a process, which the tasks can't reach.
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
    """What ``load`` is given, with references in place of secrets, and what it makes of it.

    Args:
        url: the broker's, without options.
        options: by their written names.
        inline: accept secrets that stand in an option.

    Raises:
        ConfigurationError: an option that can't be used, or a secret that is not allowed there.
    """
    connection = {_URL: url, **options}
    for name in SECRETS:
        if name in connection:
            check_secret(name, connection[name], connection.get("authPlugin"), allowed=inline)
    return connection, load(connection)


def shown_connection(connection: Mapping[str, str]) -> str:
    """How ``repr`` shows the options: secrets as ``***``, references to them as they are."""
    return repr({name: "***" if _is_hidden(name, text) else text for name, text in connection.items()})


def _is_hidden(name: str, text: str) -> bool:
    option = _OPTIONS.get(name)
    return name.startswith(_MAPS) or (option is not None and option.secret and not is_reference(text))
