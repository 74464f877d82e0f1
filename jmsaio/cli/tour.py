"""``jmsaio demo``: shows the tour of ``jmsaio.demo`` on a terminal, as plain text, or as JSON lines."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import attrs
import click
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from jmsaio.cli.common.connecting import Number
from jmsaio.cli.common.output import OK, Output

if TYPE_CHECKING:
    from jmsaio.demo import Chapter

#: Maximum width of the output in columns; longer lines are hard to read.
_WIDTH = 120
#: Seconds between two lines on a terminal.
_PACE = 0.4


@click.command()
@click.option("--step", is_flag=True, help="Wait for Enter before each chapter.")
@click.option("--pace", type=Number(min=0), help="Seconds between two lines; default 0.4 on a terminal, else 0.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines: the chapters and the events in them.")
def demo(step: bool, pace: float | None, as_json: bool) -> int:
    """Take a tour on the embedded broker; no server is needed.

    Covers typed properties, selectors, a browser, a durable subscription, redelivery and dead letters. Each chapter
    shows its source and, below it, the output as the source runs.
    """
    from jmsaio.demo import tour

    if as_json:
        asyncio.run(tour(JsonStage(Output(as_json=True))))
        return OK
    console = Console(highlight=False, emoji=False)
    if console.width > _WIDTH or not console.is_terminal:
        console = Console(highlight=False, emoji=False, width=_WIDTH)
    usual = _PACE if console.is_terminal else 0.0
    asyncio.run(tour(TerminalStage(console, usual if pace is None else pace, step)))
    return OK


@attrs.define
class TerminalStage:
    """Shows the tour to a person, with ``pace`` seconds before each line."""

    console: Console
    pace: float
    step: bool

    async def open(self, number: int, chapter: Chapter) -> None:
        """Show a chapter's title, text and source."""
        if self.step:
            await asyncio.to_thread(click.pause, "press Enter to continue")
        self.console.print()
        self.console.rule(Text(f"{number}  {chapter.title}", style="bold cyan"), align="left")
        self.console.print(Text(chapter.text))
        code = Syntax(chapter.code, "python", theme="ansi_dark", background_color="default", word_wrap=True)
        self.console.print(Padding(Panel(code, border_style="dim", expand=False), (1, 0, 1, 0)))
        await asyncio.sleep(self.pace * 2)

    async def say(self, text: str) -> None:
        """Show one line."""
        self.console.print(Text.assemble(("  > ", "bold green"), text))
        await asyncio.sleep(self.pace)

    async def close(self) -> None:
        """Show where to go from here."""
        self.console.print()
        self.console.rule(Text("Where to go from here", style="bold cyan"), align="left")
        for command, what in _NEXT:
            self.console.print(Text.assemble((f"  {command:28}", "bold"), what))


#: Shown at the end of the tour.
_NEXT = (
    ("jmsaio guide", "the guides: tutorial, configuration, selectors, reliability, testing"),
    ("jmsaio broker start", "a real Pulsar broker on this machine, without Docker"),
    ("jmsaio send orders 'hello'", "a message to a real broker; 'jmsaio receive orders' receives it"),
)


@attrs.define
class JsonStage:
    """Writes the tour as JSON lines."""

    output: Output
    chapter: str = ""

    async def open(self, number: int, chapter: Chapter) -> None:
        """Write a chapter's line."""
        self.chapter = chapter.title
        self.output.record({"chapter": chapter.title, "number": number, "text": chapter.text, "code": chapter.code})

    async def say(self, text: str) -> None:
        """Write a line for an event."""
        self.output.record({"chapter": self.chapter, "happened": text})

    async def close(self) -> None:
        """Do nothing: the lines are complete."""
