"""``python -m tests.simulation --seeds 3000``: many seeds; exit status 1 if what is promised is not true in one."""

from __future__ import annotations

import time

import click

from tests.simulation.running import run


@click.command()
@click.option("--seeds", type=click.IntRange(min=1), default=100, show_default=True, help="Number of seeds.")
@click.option("--seed", "first", type=int, default=0, show_default=True, help="First seed.")
@click.option("--trace", is_flag=True, help="Print what happened, with virtual times.")
def main(seeds: int, first: int, trace: bool) -> None:
    """Run the client on a model cluster, and print the seeds that fail and how to repeat them."""
    begun, failed, virtual = time.perf_counter(), 0, 0.0
    for seed in range(first, first + seeds):
        ran = run(seed)
        virtual += float(ran.trace[-1].partition(" ")[0])
        if trace:
            click.echo("\n".join(ran.trace))
        if trace or ran.error is not None:
            click.echo(f"seed {seed}, digest {ran.digest}: {ran.error or 'right'}")
        if ran.error is not None:
            failed += 1
            click.echo("\n".join(f"  {note}" for note in ran.error.__notes__))
    took = time.perf_counter() - begun
    click.echo(f"{seeds} seeds, {failed} failed, {virtual / 3600:.1f} virtual hours in {took:.0f} s")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
