"""The command ``jmsaio top``."""

from __future__ import annotations

import sys

import click

from jmsaio.cli.common.connecting import Number, address_options, read_connection, run
from jmsaio.cli.states import open_admin
from jmsaio.config import load


@click.command()
@address_options
@click.option(
    "--every", type=Number(min=0.1), default=2.0, show_default=True, metavar="SECONDS",
    help="Seconds between two updates.",
)  # fmt: skip
def top(url: str | None, settings: tuple[str, ...], every: float) -> int:
    """Watch queues and topics on the terminal, and browse a queue and its messages.

    Enter shows who consumes a queue and what is unacknowledged, as 'jmsaio stats' does, then its messages, then one
    message; Escape returns. Nothing is consumed. s sorts by the next column, / filters by name, q quits.

    Needs pip install 'jmsaio[top]'. For scripts, see 'jmsaio queues --watch'.
    """
    source = read_connection(url, settings)
    try:
        import textual  # noqa: F401 - checked before connecting
    except ImportError:
        raise click.UsageError("jmsaio top needs textual: pip install 'jmsaio[top]'") from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("jmsaio top needs a terminal; for scripts there is 'jmsaio queues --watch'")
    return run(_watch(source, every))


async def _watch(source: dict[str, object], every: float) -> int:
    """Connect, so that a wrong URL and refused credentials are reported as by other commands, and run the screens."""
    from jmsaio.cli.top_screens import Top, WatchedBroker
    from jmsaio.maintenance.overview import list_states

    config = load(source)
    async with open_admin(config) as admin:
        first = await list_states(admin, config)
        return await Top(WatchedBroker(admin, source, config, every), first).run_to_end()
