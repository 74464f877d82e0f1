"""``python -m tests.storm --minutes 10``: a storm on a broker of its own.

Exit status: 1 if a message was lost or something was left behind, 3
if the client's process crashed, so that nothing can be said of messages.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import attrs
import click

from tests.storm import transfers
from tests.storm.storm import DAMAGE, FAULTS, Plan, run
from tests.support.broker import LaunchedBroker, watch_launcher

CRASHED = 3


@click.command()
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), default=10.0, show_default=True)
@click.option("--kills", type=click.IntRange(min=0), default=2, show_default=True, help="kill -9 of the broker.")
@click.option("--restarts", type=click.IntRange(min=0), default=2, show_default=True, help="Orderly ones.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of all chance.")
@click.option("--without", multiple=True, type=click.Choice(sorted(FAULTS)), help="Leave out a fault; repeatable.")
@click.option("--damage", multiple=True, type=click.Choice(sorted(DAMAGE)), help="Damage bytes, too; repeatable.")
@click.option("--transport", type=click.Choice(["pulsar-client", "wire"]), default="pulsar-client", show_default=True)
@click.option("--transfers", "transferring", is_flag=True, help="Move amounts in transactions of the broker instead.")
@click.option("--verbose", is_flag=True, help="Show the library's log.")
@click.option("--inside", is_flag=True, hidden=True)
def main(
    minutes: float, kills: int, restarts: int, seed: int, without: tuple[str, ...], damage: tuple[str, ...],
    transport: str, transferring: bool, verbose: bool, inside: bool,
) -> None:  # fmt: skip
    """Send, receive and cancel while the network breaks and the broker is killed; count what is lost."""
    if not inside:
        raise SystemExit(watch(sys.argv[1:], damage))
    logging.basicConfig(level=logging.INFO if verbose else logging.CRITICAL)
    faults = tuple(name for name in FAULTS if name not in without) + damage
    plan = Plan(minutes * 60, kills, faults, seed, transport=transport, restarts=restarts)
    click.echo(f"{attrs.asdict(plan)}")
    watch_launcher()
    with tempfile.TemporaryDirectory(prefix="jmsaio-storm-") as folder:
        broker = LaunchedBroker(Path(folder), memory="512m")
        broker.start()
        try:
            if transferring:
                plan = attrs.evolve(plan, faults=tuple(name for name in transfers.FAULTS if name not in without))
                balance = asyncio.run(transfers.run(broker, plan, click.echo))
                click.echo(f"{'the sum is right' if balance.right else 'WRONG'}: {balance}")
                raise SystemExit(0 if balance.right else 1)
            journal = asyncio.run(run(broker, plan, click.echo))
        finally:
            broker.kill()
    click.echo("\n".join(journal.lines()))
    raise SystemExit(1 if journal.lost or journal.left else 0)


def watch(arguments: list[str], damage: tuple[str, ...]) -> int:
    """Have the storm in a process of its own, and say how that ended if it could not say so itself."""
    command = [sys.executable, "-u", "-X", "faulthandler", "-m", "tests.storm", "--inside", *arguments]
    code = subprocess.run(command, check=False).returncode
    if code >= 0:
        return code
    click.echo(f"CRASHED: the client's process ended with {signal.Signals(-code).name}; nothing is known of messages")
    if damage:
        click.echo(
            "Damaged bytes make pulsar-client 3.13 crash when the broker finds a batch damaged while an earlier one is "
            "on its way (tests/transport/pulsar/native/naive/damaged_batch.py shows it without jmsaio). It is that one "
            "if no Python thread above is the current one, and gdb shows ProducerImpl::resendMessages."
        )
    return CRASHED


if __name__ == "__main__":
    main()
