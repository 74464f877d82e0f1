"""``jmsaio broker``: a real Pulsar broker on this machine, without Docker."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jmsaio.cli.common.connecting import Number, pairs
from jmsaio.cli.common.output import NOTHING, OK, Output, json_option, printable, show_help_alone

if TYPE_CHECKING:
    from jmsaio.launcher import BrokerStatus, Progress

_directory = click.option(
    "--dir", "directory", type=click.Path(file_okay=False, path_type=Path),
    help="The broker's folder (data, log, settings); default: one in the user's state folder.",
)  # fmt: skip


@click.group(invoke_without_command=True)
@click.pass_context
def broker(context: click.Context) -> None:
    """Start and stop a real Pulsar broker on this machine, without Docker.

    Requires Java 17 or newer and, for the first start, Maven, which downloads about 230 MB.
    """
    show_help_alone(context)


@broker.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=6650, show_default=True, help="Port for clients; 0: any free port."
)
@click.option(
    "--web-port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port of the REST interface; 0: any free port.",
)
@_directory
@click.option("--memory", default="2g", show_default=True, help="Maximum Java heap, in Java's notation.")
@click.option(
    "--timeout",
    type=Number(min=0, min_open=True),
    default=120.0,
    show_default=True,
    help="Maximum seconds to wait until the broker is ready.",
)
@click.option("--fresh", is_flag=True, help="Delete the data of an earlier broker in the folder first.")
@click.option("--no-filter", is_flag=True, help="Start without Starlight's server-side selector filter.")
@click.option(
    "--auth", type=click.Choice(["token"]), help="Require a token from clients, which also grants their permissions."
)
@click.option(
    "-o",
    "--option",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=pairs,
    help="A broker setting by Pulsar's name. Repeatable.",
)
@json_option
def start(
    port: int, web_port: int, directory: Path | None, memory: str, timeout: float, fresh: bool, no_filter: bool,
    auth: str | None, settings: dict[str, str], output: Output,
) -> int:  # fmt: skip
    """Start the broker and wait until it is ready; it keeps running after the command ends."""
    from jmsaio import launcher

    options = launcher.StartOptions(
        broker_port=port, web_port=web_port, memory=memory, timeout=timeout, fresh=fresh, filters=not no_filter,
        auth=auth, settings=settings, state_directory=directory or launcher.state_directory(),
    )  # fmt: skip
    with _reporting(output, "starting a broker") as report:
        status = launcher.start(options, report)
    _show(output, status)
    if not output.as_json:
        output.line(f"use it:   export JMSAIO_URL={shlex.quote(status.client_url())}")
        output.line("stop it:  jmsaio broker stop" + ("" if directory is None else f" --dir {directory}"))
    return OK


@broker.command()
@click.option(
    "--timeout",
    type=Number(min=0),
    default=30.0,
    show_default=True,
    help="Seconds to wait for a clean shutdown before killing the broker; 0 kills it at once.",
)
@_directory
@json_option
def stop(timeout: float, directory: Path | None, output: Output) -> int:
    """Stop the broker; its data is kept. The exit code is 3 if none was running."""
    from jmsaio import launcher

    with _reporting(output, "stopping the broker"):
        stopped = launcher.stop(timeout, directory=directory)
    output.result({"stopped": stopped}, "the broker is stopped" if stopped else "no broker was running")
    return OK if stopped else NOTHING


@broker.command()
@_directory
@json_option
def status(directory: Path | None, output: Output) -> int:
    """Show whether a broker is running, and its addresses. The exit code is 3 if none is."""
    from jmsaio import launcher

    found = launcher.status(directory=directory)
    if found is None:
        output.result({"running": False}, "no broker is running; 'jmsaio broker start' starts one")
        return NOTHING
    _show(output, found)
    return OK


@broker.command()
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), default=50, show_default=True, help="Number of lines to show."
)
@_directory
def logs(lines: int, directory: Path | None) -> int:
    """Show the end of the broker's log. To follow it: tail -F, with the file that 'jmsaio broker status' names."""
    from jmsaio import launcher

    click.echo(launcher.logs(lines, directory=directory), nl=False)
    return OK


@broker.command("filter")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@json_option
def pack(folder: Path, output: Output) -> int:
    """Write Starlight's server-side selector filter to FOLDER, for a broker that runs elsewhere (see compose/)."""
    from jmsaio import launcher

    with _reporting(output, "packing the filter") as report:
        path = launcher.pack_filter(folder, report)
    output.result({"file": str(path)}, f"written: {path}")
    return OK


@contextmanager
def _reporting(output: Output, what: str) -> Iterator[Progress]:
    """Report the launcher's progress: a spinner with the last line on a terminal, else each line as a remark."""
    if output.as_json or not output.remarks.is_terminal:
        yield output.remark
        return
    with output.remarks.status(what) as spinner:
        yield lambda text: spinner.update(printable(text))


def _show(output: Output, status: BrokerStatus) -> None:
    data: dict[str, object] = {
        "running": True,
        "ready": status.ready,
        "service_url": status.service_url,
        "web_service_url": status.web_service_url,
        "url": status.client_url(),
        "tokens": {role: str(path) for role, path in status.token_files.items()},
        "pid": status.pid,
        "version": status.version,
        "started_at": status.started_at,
        "log": str(status.log_path),
    }
    if output.as_json:
        output.record(data)
        return
    output.line(
        f"Pulsar {status.version} {'is ready' if status.ready else 'is running but does not answer'}", style="bold"
    )
    for name in ("url", "web_service_url", "pid", "started_at", "log"):
        output.line(f"  {name:16} {data[name]}")
    for role, path in status.token_files.items():
        output.line(f"  {f'token of {role}':16} {path}")
