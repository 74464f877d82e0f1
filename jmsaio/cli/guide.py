"""``jmsaio guide``: shows the packaged guides, rendered on a terminal and raw in a pipe."""

from __future__ import annotations

import re
import sys
from importlib import resources
from importlib.resources.abc import Traversable

import click
from rich.console import Console
from rich.markdown import Markdown

from jmsaio.cli.common.output import OK, make_output
from jmsaio.config.options import nearest
from jmsaio.model.arguments import shown


def guides() -> dict[str, Traversable]:
    """Return the guides by name, in the order of the links in ``contents``."""
    folder = resources.files("jmsaio").joinpath("guide")
    links = re.findall(r"\]\(([\w-]+)\.md\)", folder.joinpath("contents.md").read_text(encoding="utf-8"))
    return {name: folder.joinpath(f"{name}.md") for name in ("contents", *links)}


def title(text: str) -> str:
    return next((line.lstrip("# ").strip() for line in text.splitlines() if line.startswith("# ")), "")


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in guides() if name.startswith(incomplete)]


@click.command()
@click.argument("name", required=False, shell_complete=_complete)
@click.option(
    "--raw/--rendered", default=None, help="Show Markdown source or rendered text; default: rendered on a terminal."
)
def guide(name: str | None, raw: bool | None) -> int:
    """Show a guide, or list all guides; 'jmsaio guide NAME | less' can be searched."""
    known = guides()
    if name is None:
        output = make_output(None)
        for key, file in known.items():
            heading = title(file.read_text(encoding="utf-8"))
            output.result({"name": key, "title": heading}, f"  {key:16} {heading}")
        output.remark("read one with: jmsaio guide NAME")
        return OK
    file_named = known.get(name.removesuffix(".md"))
    if file_named is None:
        hint = nearest(name, known) or f"; there are {', '.join(known)}"
        raise click.UsageError(f"unknown guide {shown(name)}{hint}")
    text = file_named.read_text(encoding="utf-8")
    if raw if raw is not None else not sys.stdout.isatty():
        click.echo(text, nl=False)
        return OK
    console = Console(width=min(Console().width, 110))
    console.print(Markdown(text))
    return OK
