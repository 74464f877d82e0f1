"""``python -m tests.schedules --seeds 10000``: every scenario with many seeds; exit status 1 if one fails."""

from __future__ import annotations

import time
from itertools import count

import click

from tests.schedules.running import SHUFFLED, lawful, run
from tests.schedules.scenarios import SCENARIOS


@click.command()
@click.option("--seeds", type=click.IntRange(min=1), default=200, show_default=True, help="Seeds per scenario.")
@click.option("--start", type=int, default=0, show_default=True, help="First seed.")
@click.option("--scenario", "names", multiple=True, type=click.Choice(sorted(SCENARIOS)), help="Repeatable.")
@click.option("--lawful", "as_asyncio", is_flag=True, help="Only the orders that asyncio leaves open.")
@click.option("--seconds", type=float, default=float("inf"), help="End each scenario after this time.")
def main(seeds: int, start: int, names: tuple[str, ...], as_asyncio: bool, seconds: float) -> None:
    """Run scenarios under seeded schedules, and print the seeds that fail."""
    failures = 0
    for name in names or tuple(SCENARIOS):
        began, failed, ran = time.perf_counter(), dict[int, str](), 0
        for seed in count(start):
            if ran == seeds or time.perf_counter() - began > seconds:
                break
            ran += 1
            try:
                run(SCENARIOS[name], seed, lawful if as_asyncio else SHUFFLED)
            except Exception as error:
                failed[seed] = f"{type(error).__name__}: {error}"
        click.echo(f"{name}: {ran} seeds, {len(failed)} failed, {time.perf_counter() - began:.1f} s")
        for seed, why in list(failed.items())[:5]:
            click.echo(f"  seed {seed}: {why[:300]}")
        failures += len(failed)
    raise SystemExit(failures > 0)


if __name__ == "__main__":
    main()
