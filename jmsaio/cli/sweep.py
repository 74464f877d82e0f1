"""``jmsaio sweep``: lists leftovers of crashed clients on a broker, and deletes them with --yes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from jmsaio.cli.common.connecting import Number, Source, broker_options
from jmsaio.cli.common.output import ERROR, NOTHING, OK, Output, json_option, shown_age
from jmsaio.config import load

if TYPE_CHECKING:
    from jmsaio.errors import JMSError
    from jmsaio.maintenance.sweep import Leftover


@click.command()
@broker_options()
@click.option(
    "--idle",
    type=Number(min=0),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="Minimum time that a leftover has been unused.",
)
@click.option(
    "--watch",
    type=Number(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="With --yes: time to watch before deleting, so that clients can reconnect.",
)
@click.option("--yes", is_flag=True, help="Delete the leftovers instead of listing them.")
@json_option
async def sweep(source: Source, idle: float, watch: float, yes: bool, output: Output) -> int:
    """List the leftovers of crashed clients; with --yes, delete them.

    Leftovers are topics named jms-temp-* and subscriptions named jmsaio-nd-* in jms.systemNamespace that have neither
    producers nor consumers and have been unused for --idle seconds (an hour by default); nothing else is touched.
    Leftovers of unknown age are listed but never deleted.

    The exit code is 3 if nothing was found, 1 if something could not be deleted.
    """
    from jmsaio.maintenance.sweep import delete_leftovers, find_leftovers
    from jmsaio.transport.registry import connected

    config = load(source)
    if not config.use_pulsar_admin:
        raise click.UsageError("sweeping needs the admin interface; remove jms.usePulsarAdmin=false")
    results: dict[Leftover, JMSError | None] = {}
    async with connected(config) as transport:
        admin = transport.admin
        assert admin is not None  # usePulsarAdmin was checked
        found = await find_leftovers(admin, config.system_namespace, idle)
        if yes:
            if found:
                output.remark(f"{len(found)} found, watching for {watch:g} s before deleting")
            results = await delete_leftovers(admin, config.system_namespace, idle, found, watch)
    for one in found:
        _write(output, one, results)
    if not found:
        output.remark(f"nothing left behind in {config.system_namespace}")
        return NOTHING
    deleted = sum(error is None for error in results.values())
    output.remark(f"{deleted} of {len(found)} deleted" if yes else f"{len(found)} found; --yes deletes them")
    return ERROR if deleted < len(results) else OK


def _write(output: Output, one: Leftover, results: dict[Leftover, JMSError | None]) -> None:
    what = f"topic {one.topic}" if one.subscription is None else f"subscription {one.subscription} of {one.topic}"
    age = "age unknown, never deleted" if one.idle is None else f"idle for {shown_age(one.idle)}"
    error, state, verdict = results.get(one), "age unknown" if one.idle is None else "found", ""
    if error is not None:
        state, verdict = "kept", f", not deleted: {error}"
    elif one in results:
        state, verdict = "deleted", ", deleted"
    output.result({
        "topic": one.topic, "subscription": one.subscription, "idle": one.idle, "state": state,
        "reason": None if error is None else str(error),
    }, f"{what}: {age}{verdict}")  # fmt: skip
