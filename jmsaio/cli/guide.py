"""``jmsaio guide``: shows the packaged guides, rendered on a terminal and raw in a pipe."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from importlib import resources
from importlib.resources.abc import Traversable

import click
from rich.console import Console
from rich.markdown import Markdown

from jmsaio.cli.common.output import NOTHING, OK, make_output
from jmsaio.config.options import nearest
from jmsaio.model.arguments import shown


def guides() -> dict[str, Traversable]:
    """Return the guides by name, in the order of the links in ``contents``."""
    folder = resources.files("jmsaio").joinpath("guide")
    links = re.findall(r"\]\(([\w-]+)\.md\)", folder.joinpath("contents.md").read_text(encoding="utf-8"))
    return {name: folder.joinpath(f"{name}.md") for name in ("contents", *links)}


def title(text: str) -> str:
    """Return the first heading of a guide."""
    return next((line.lstrip("# ").strip() for line in text.splitlines() if line.startswith("# ")), "")


def excerpts(text: str, terms: Sequence[str]) -> str:
    """Return the parts of a guide that contain all of ``terms`` in their text or heading, ignoring case; "" if none.

    A part is a paragraph, a list item, a code block, or a table row, which is shown below the table's header.
    """
    found: list[str] = []
    last = ("", "")
    for heading, head, part in _parts(text):
        if not all(term.lower() in f"{heading}\n{part}".lower() for term in terms):
            continue
        if heading != last[0]:
            found += ["", heading]
        if (heading, head) != last or not head:
            found += ["", head] if head else [""]
        found.append(part)
        last = (heading, head)
    return "\n".join(found).strip("\n")


def _parts(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield each part of a guide with the heading above it and, for a table row, the table's header."""
    heading = head = part = ""
    code = False
    for line in [*text.splitlines(), ""]:
        if part and not code and (not line or line.startswith(("#", "|", "- "))):
            yield heading, "", part
            part = ""
        if line.startswith("```"):
            code = not code
        if line.startswith("#") and not code:
            heading, head = line, ""
        elif line.startswith("|") and not code:
            if head.count("\n"):
                yield heading, head, line
            else:
                head = f"{head}\n{line}" if head else line
        elif line or code:
            head, part = "", f"{part}\n{line}" if part else line
        else:
            head = ""


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in guides() if name.startswith(incomplete)]


@click.command()
@click.argument("name", required=False, shell_complete=_complete)
@click.argument("terms", nargs=-1, metavar="[TERM]...")
@click.option(
    "--raw/--rendered", default=None, help="Show Markdown source or rendered text; default: rendered on a terminal."
)
def guide(name: str | None, terms: tuple[str, ...], raw: bool | None) -> int:
    """Show a guide, or list all guides. With terms, show only the parts of a guide that contain all of them.

    \b
      jmsaio guide configuration
      jmsaio guide configuration redelivery delay
    """
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
    if terms:
        text = excerpts(text, terms)
        if not text:
            click.echo(f"nothing in the guide {shown(name)} has {' and '.join(map(repr, terms))}", err=True)
            return NOTHING
        text += "\n"
    if raw if raw is not None else not sys.stdout.isatty():
        click.echo(text, nl=False)
        return OK
    console = Console(width=min(Console().width, 110))
    console.print(Markdown(text))
    return OK
