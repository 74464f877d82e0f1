"""Shared by the commands that connect: broker, configuration, destination, event loop."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from urllib.parse import urlsplit

import anyio
import click

from jmsaio.cli.common.output import Output, printable
from jmsaio.cli.common.selecting import topic_option, with_options
from jmsaio.config import Configuration, load
from jmsaio.config.declaring import directory
from jmsaio.config.options import Section, Status
from jmsaio.config.sources import is_url, read_file, split_url
from jmsaio.errors import AdminError, BrokerUnavailableError, NotFoundError
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import Queue, Topic
from jmsaio.transport.causes import cause_of

if TYPE_CHECKING:
    from jmsaio.client.session import Session

P = ParamSpec("P")
T = TypeVar("T")

#: Default seconds to wait for a broker, short because a person is waiting.
CONNECT_TIMEOUT = 3.0


def broker_options(command: Callable[P, T]) -> Callable[P, T]:
    """Add the options that name and configure the broker."""
    return with_options(
        command,
        click.option("-u", "--url", metavar="URL",
                     help="URL of the broker, or a JSON or TOML configuration file; default: $JMSAIO_URL."),
        click.option("-o", "--option", "settings", multiple=True, metavar="NAME=VALUE", shell_complete=_complete,
                     help="An option by Starlight's or jmsaio's name, such as transport=wire. Repeatable."),
    )  # fmt: skip


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the options that begin with ``incomplete``, each with its choices if it has some."""
    options = [option for section in Section for option in directory(section).options if option.status is Status.BUILT]
    texts = (f"{option.name}={choice}" for option in options for choice in option.choices or ("",))
    return [text for text in texts if text.startswith(incomplete)]


def connection_options(command: Callable[P, T]) -> Callable[P, T]:
    """Add the options that name and configure the broker, and the option for the kind of destination."""
    return broker_options(topic_option(command))


def read_connection(
    url: str | None, settings: tuple[str, ...], *, embedded: bool = False
) -> dict[str, object]:  # fmt: skip
    """Return the validated configuration as one map.

    Args:
        url: the value of ``--url``.
        settings: the values of ``--option``.
        embedded: accept the embedded broker if the configuration names it.

    Raises:
        click.UsageError: an option has no ``=``, or the embedded broker is not accepted.
        ConfigurationError: as for ``jmsaio.config.load``.
    """
    url = url or os.environ.get("JMSAIO_URL") or None
    source: dict[str, object] = {}
    if url is not None:
        source = {"brokerServiceUrl": url} if is_url(url) else read_file(pathlib.Path(url))
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--option needs NAME=VALUE, not {shown(name)}")
        source[name] = value
    config = load(source)
    if config.in_process and (config.fallback or not embedded):
        raise click.UsageError(refusal(config))
    _, in_url = split_url(str(source.get("brokerServiceUrl", source.get("service_url", "memory:"))))
    if "connect_timeout" not in source and "connect_timeout" not in in_url:
        source["connect_timeout"] = CONNECT_TIMEOUT
    return source


async def require_rest(config: Configuration) -> None:
    """Check that the REST interface accepts connections, since calls are retried for half a minute.

    Raises:
        BrokerUnavailableError: the connection failed; the error gives the cause.
    """
    place = urlsplit(config.web_service_url)
    host, port = place.hostname or "", place.port or (443 if place.scheme == "https" else 80)
    try:
        with anyio.fail_after(CONNECT_TIMEOUT):
            stream = await anyio.connect_tcp(host, port)
    except OSError as error:  # includes TimeoutError
        why = "no answer" if isinstance(error, TimeoutError) else cause_of(error)
        raise BrokerUnavailableError(
            f"the broker's REST interface at {config.web_service_url} can't be reached: {why}; give the right "
            "webServiceUrl, or disable REST with -o jms.usePulsarAdmin=false",
            host,
            port,
        ) from error
    await stream.aclose()


def refusal(config: Configuration) -> str:
    """Explain that the embedded broker can't be used by a command, and which broker to start instead."""
    which = "no broker is configured, and the embedded one" if config.fallback else "the embedded broker"
    return (
        f"{which} lives in one process only, so no other process could use it; start a real one with "
        "'jmsaio broker start', then give --url pulsar://127.0.0.1:6650 or set JMSAIO_URL"
    )


async def require_destination(source: dict[str, object], destination: Queue | Topic, output: Output) -> None:
    """Check that a queue or topic exists, since opening a consumer or a browser creates it.

    If the administration is switched off or does not answer, a remark says that nothing was checked.

    Raises:
        NotFoundError: it does not exist, or is a topic without the subscription of a queue.
    """
    from jmsaio.maintenance.overview import exists
    from jmsaio.transport.registry import connected

    config = load(source)
    reason = "jms.usePulsarAdmin=false"
    try:
        async with connected(config) as transport:
            if transport.admin is not None and await exists(transport.admin, config, destination):
                return
            missing = transport.admin is not None
    except AdminError as error:
        missing, reason = False, str(error)
    kind, name = ("queue" if isinstance(destination, Queue) else "topic"), printable(destination.name)
    if missing:
        text = f"there is no {kind} {name}: 'jmsaio {kind}s' lists them, and --create creates it"
        raise NotFoundError(text)
    output.remarks.print(printable(f"whether the {kind} {name} exists was not checked: {reason}"))


def destination(session: Session, name: str, topic: bool) -> Queue | Topic:
    """Create the queue or topic of a name."""
    return session.create_topic(name) if topic else session.create_queue(name)
