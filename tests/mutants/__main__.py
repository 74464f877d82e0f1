"""``python -m tests.mutants``: hunts mutants, prints those that no test noticed, and their share.

The exit status is 0 when enough of them were noticed, 1 when not, and 2 when the tests could not judge.
"""

from __future__ import annotations

import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from jmsaio.launcher import LauncherError
from tests.mutants.broker import shared_broker, variables
from tests.mutants.hunt import PACKAGES, Hunt, Mutant, modules, mutants, sample, tried
from tests.mutants.neighbours import Neighbours
from tests.mutants.trial import Copy, TrialError
from tests.support.broker import TestBroker, watch_launcher

ROOT = Path(__file__).parents[2]


@click.command()
@click.option("--sample", "size", default=100, show_default=True, help="how many mutants to try")
@click.option("--seed", type=int, help="draws the same sample again on the same tree; by default a new one")
@click.option(
    "--package", "packages", multiple=True, help="part of jmsaio, e.g. client or client/session.py; repeatable"
)
@click.option("--also", multiple=True, type=Path, help="tests to run last for what no other test noticed; repeatable")
@click.option(
    "--broker", "on_a_broker", is_flag=True, help="also run the tests on a real broker, for jmsaio/transport/pulsar"
)
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="how many mutants to try at once")
@click.option("--slow", default=5.0, show_default=True, help="seconds after which a test is left out")
@click.option("--least", default=92.0, show_default=True, help="per cent that must be noticed")
def main(
    size: int,
    seed: int | None,
    packages: tuple[str, ...],
    also: tuple[Path, ...],
    on_a_broker: bool,
    jobs: int,
    slow: float,
    least: float,
) -> None:
    """Try a sample of plausible mistakes and print those that no test noticed."""
    seed = secrets.randbelow(10_000) if seed is None else seed
    try:
        chosen = sample(ROOT, mutants(ROOT, modules(ROOT, packages or PACKAGES)), size, seed)
    except FileNotFoundError as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"{len(chosen)} mutants, --seed {seed}")
    watch_launcher()
    try:
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder, _broker(on_a_broker, Path(folder)) as broker:
            copy = Copy.of(ROOT, Path(folder, "tree"), variables(broker) if broker is not None else {})
            missed = _hunt(Hunt(ROOT, Neighbours(ROOT), copy, also, broker is not None), chosen, slow, jobs, broker)
    except (TrialError, LauncherError) as error:
        click.echo(error, err=True)
        raise SystemExit(2) from error
    share = 100 * (len(chosen) - missed) / max(len(chosen), 1)
    click.echo(f"{len(chosen) - missed} of {len(chosen)} mutants were noticed: {share:.1f} % (at least {least:g} %)")
    raise SystemExit(share < least)


@contextmanager
def _broker(wanted: bool, folder: Path) -> Iterator[TestBroker | None]:
    """The broker for the tests, if one is wanted."""
    if not wanted:
        yield None
        return
    click.echo("starting a broker")
    with shared_broker(folder / "broker") as broker:
        yield broker


def _hunt(hunt: Hunt, chosen: list[Mutant], slow: float, jobs: int, broker: TestBroker | None) -> int:
    """How many were not noticed."""
    click.echo("running the tests without a mutant")
    hunt.prepare(chosen, slow, jobs)
    for name, why in hunt.copy.left_out.items():
        click.echo(f"left out: {name} ({why})")
    missed = 0
    with click.progressbar(
        tried(hunt.twins(jobs), chosen), len(chosen), label="mutants", show_eta=False, file=sys.stderr
    ) as bar:
        for mutant, noticed in bar:
            if broker is not None and not broker.running:
                raise TrialError(f"the broker ended: what it says of {mutant.described(ROOT)} counts for nothing")
            if not noticed:
                missed += 1
                click.echo(f"\nnot noticed: {mutant.described(ROOT)}")
    return missed


if __name__ == "__main__":
    main()
