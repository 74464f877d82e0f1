"""``python -m tests.interop``: fills the matrix on a broker of its own, and prints it or writes it into the guide.

Exit status: 1 if a cell fails without a line in the compatibility guide.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import click

from jmsaio import launcher
from tests.interop.matrix import run
from tests.interop.rows import rows
from tests.interop.table import faults, render, write
from tests.support.broker import LaunchedBroker, external_broker, watch_launcher
from tests.support.java import class_path, compile_java

SOURCES = Path(__file__).parents[1] / "java"


@click.command()
@click.option("--table", "shown", is_flag=True, help="Print the tables; the default.")
@click.option("--write", "written", is_flag=True, help="Write the tables into the interop guide.")
@click.option("--only", default="", metavar="TEXT", help="Only the rows whose group or name contain this text.")
def main(shown: bool, written: bool, only: str) -> None:
    """Send with one client, receive with the other, and compare field by field."""
    chosen = [row for row in rows() if only.lower() in f"{row.group}, {row.name}".lower()]
    if written and only:
        raise click.UsageError("--write needs all rows")
    jars = class_path(*launcher.fetch_jars(launcher.JAVA_CLIENT))
    classes = class_path(jars, compile_java(sorted(SOURCES.glob("*.java")), jars))
    watch_launcher()
    with tempfile.TemporaryDirectory(prefix="jmsaio-interop-") as folder:
        broker = external_broker() or LaunchedBroker(Path(folder), memory="512m")
        if isinstance(broker, LaunchedBroker):
            broker.start()
        try:
            results = asyncio.run(run(broker, classes, chosen))
        finally:
            if isinstance(broker, LaunchedBroker):
                broker.kill()
    table = render(chosen, results)
    if written:
        write(table)
    if shown or not written:
        click.echo(table)
    found = faults(chosen, results)
    for fault in found:
        click.echo(fault, err=True)
    raise SystemExit(1 if found else 0)


if __name__ == "__main__":
    main()
