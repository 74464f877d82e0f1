"""Shared by commands that connect: options, configuration, event loop, interrupts, completion, and questions."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import pathlib
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import anyio
import click

from jmsaio.cli.common.output import INTERRUPTED, Output, printable
from jmsaio.config import Configuration, load
from jmsaio.config.declaring import directory
from jmsaio.config.loading import read_file
from jmsaio.config.options import Section, Status
from jmsaio.config.schemes import is_url, split_url
from jmsaio.errors import AdminError, BrokerUnavailableError, JMSError, NotFoundError
from jmsaio.model.arguments import shown
from jmsaio.model.destinations import Queue, Topic, with_kind
from jmsaio.model.durations import TEN_YEARS
from jmsaio.transport.causes import cause_of

if TYPE_CHECKING:
    from jmsaio.client.session import Session

T = TypeVar("T")

#: A function that click calls.
Command = Callable[..., Any]
#: The configuration of a command, as ``jmsaio.connect`` accepts it.
Source = dict[str, object]


class Number(click.FloatRange):
    """A number of seconds or the like within limits; nan and infinity are refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not number <= TEN_YEARS:  # nor for nan
            self.fail(f"{value} is not a finite number up to {TEN_YEARS:.0f}.", param, ctx)
        return number


topic_option = click.option("-t", "--topic", is_flag=True, help="The destination is a topic; default: a queue.")
selector_option = click.option("-s", "--selector", metavar="SELECTOR", help="Only messages that match this selector.")
create_option = click.option("--create", is_flag=True, help="Create the destination if it does not exist.")
of_option = click.option(
    "--of",
    metavar="SUBSCRIPTION",
    help="Use the dead letters of this subscription of DESTINATION, such as jms-queue.",
)


def with_options(command: Command, *options: Callable[[Any], Any]) -> Command:
    """Add options and arguments to a command, which shows them in this order."""
    return functools.reduce(lambda done, option: option(done), reversed(options), command)


def full_name(name: str, topic: bool) -> str:
    """Add the kind to a destination's name, unless the name includes it."""
    return with_kind(name, "topic" if topic else "queue")


#: Default seconds to wait for a broker, short because a person is waiting.
CONNECT_TIMEOUT = 3.0


def broker_options(*, embedded: bool = False) -> Callable[[Command], Command]:
    """Add the options that name and configure the broker, as the parameter ``source`` of ``read_connection``.

    A command that is a coroutine function runs as by ``run``.
    """

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def with_source(*, url: str | None, settings: dict[str, str], **options: Any) -> Any:
            done = command(source=read_connection(url, settings, embedded=embedded), **options)
            return run(done) if inspect.iscoroutine(done) else done

        return with_options(
            with_source,
            click.option("-u", "--url", metavar="URL",
                         help="URL of the broker, or a JSON or TOML configuration file; default: $JMSAIO_URL."),
            click.option("-o", "--option", "settings", multiple=True, metavar="NAME=VALUE", callback=pairs,
                         shell_complete=_complete,
                         help="An option by Starlight's or jmsaio's name, such as transport=wire. Repeatable."),
        )  # fmt: skip

    return add


def pairs(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Parse the values of a repeated option, NAME=VALUE, into a map. Raises click.UsageError."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{option.opts[-1]} needs {option.metavar}, not {shown(name)}")
        found[name] = value
    return found


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the options that begin with ``incomplete``, each with its choices if it has some."""
    options = [option for section in Section for option in directory(section).options if option.status is Status.BUILT]
    texts = (f"{option.name}={choice}" for option in options for choice in option.choices or ("",))
    return [text for text in texts if text.startswith(incomplete)]


def read_connection(url: str | None, settings: Mapping[str, str], *, embedded: bool = False) -> Source:
    """Return the validated configuration of ``--url`` and ``--option`` as one map.

    Raises ConfigurationError as ``jmsaio.config.load``, and click.UsageError if the embedded broker is used; with
    ``embedded``, only if no configuration names it.
    """
    url = url or os.environ.get("JMSAIO_URL") or None
    source: Source = {}
    if url is not None:
        source = {"brokerServiceUrl": url} if is_url(url) else read_file(pathlib.Path(url))
    source.update(settings)
    config = load(source)
    if config.in_process and (config.fallback or not embedded):
        which = "no broker is configured, and the embedded one" if config.fallback else "the embedded broker"
        raise click.UsageError(
            f"{which} lives in one process only, so no other process could use it; start a real one with "
            "'jmsaio broker start', then give --url pulsar://127.0.0.1:6650 or set JMSAIO_URL"
        )
    _, in_url = split_url(str(source.get("brokerServiceUrl", source.get("service_url", "memory:"))))
    if "connect_timeout" not in source and "connect_timeout" not in in_url:
        source["connect_timeout"] = CONNECT_TIMEOUT
    return source


async def require_rest(config: Configuration) -> None:
    """Check that the REST interface accepts connections, since calls are retried for half a minute."""
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


async def require_destination(source: Source, destination: Queue | Topic, output: Output) -> None:
    """Raise NotFoundError if a queue or topic does not exist, since opening a consumer or a browser creates it.

    If the administration is switched off or does not answer, a remark says that nothing was checked.
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
    return session.create_topic(name) if topic else session.create_queue(name)


def complete_destination(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of queues and topics that begin with ``incomplete``; none if the broker can't be asked."""
    from jmsaio.maintenance.dead_letters import require_admin
    from jmsaio.maintenance.overview import list_names
    from jmsaio.transport.registry import connected

    async def find() -> list[str]:
        config = load(read_connection(context.params.get("url"), context.params.get("settings") or {}))
        async with asyncio.timeout(CONNECT_TIMEOUT), connected(config) as transport:
            return await list_names(require_admin(transport), config)

    try:
        return [name for name in asyncio.run(find()) if name.startswith(incomplete)]
    except (JMSError, OSError, click.UsageError):
        return []


#: Adds ``--yes`` to a command, as the parameter ``yes``.
yes_option = click.option("--yes", is_flag=True, help="Don't ask; required if standard input is not a terminal.")


def agreed(question: str, yes: bool) -> bool:
    """Return whether ``--yes`` was given, or the question is answered with yes on the terminal."""
    require_terminal(yes)
    return yes or click.confirm(question, err=True)


def require_terminal(yes: bool) -> None:
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("this deletes messages or moves them; give --yes if that is meant")


#: Seconds for which further interrupts count as the first one: keys are pressed twice, and terminals repeat them.
_SAME: Final = 1.0
#: Shows the cursor, which the line with the progress hides.
_SHOW_CURSOR: Final = "\x1b[?25h"


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine on a new event loop; an interrupt closes the connection before the command exits.

    Another interrupt, a second or more after the first one, ends the process at once, without a traceback: as after a
    kill, what was sent and not yet acknowledged is sent again by the next run.
    """
    first: float | None = None

    async def watched() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def interrupt(*_: object) -> None:
            nonlocal first
            now = time.monotonic()
            if first is None:
                first = now
                loop.call_soon_threadsafe(task.cancel)
            elif now - first >= _SAME:
                sys.stderr.write(f"{_SHOW_CURSOR if sys.stderr.isatty() else ''}jmsaio: interrupted again\n")
                sys.stderr.flush()
                os._exit(INTERRUPTED)

        with suppress(ValueError):  # another thread than the main one, which receives no signals
            signal.signal(signal.SIGINT, interrupt)
        return await work

    previous = signal.getsignal(signal.SIGINT)
    try:
        return asyncio.run(watched())
    except asyncio.CancelledError:
        if first is None:
            raise
        raise KeyboardInterrupt from None
    finally:
        with suppress(ValueError):
            signal.signal(signal.SIGINT, previous)
