"""``jmsaio demo``: shows the tour of ``jmsaio.demo``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from jmsaio.cli.common.connecting import Number
from jmsaio.cli.common.output import OK

if TYPE_CHECKING:
    from jmsaio.demo import Chapter, Say

#: Maximum width of the output in columns; longer lines are hard to read.
_WIDTH = 120
#: Seconds between two lines on a terminal.
_PACE = 0.4
#: Shown at the end of the tour.
_NEXT = (
    ("jmsaio guide", "the guides: tutorial, configuration, selectors, reliability, testing"),
    ("jmsaio broker start", "a real Pulsar broker on this machine, without Docker"),
    ("jmsaio send orders 'hello'", "a message to a real broker; 'jmsaio receive orders' receives it"),
)


@click.command()
@click.option("--step", is_flag=True, help="Wait for Enter before each chapter.")
@click.option("--pace", type=Number(min=0), help="Seconds between two lines; default 0.4 on a terminal, else 0.")
def demo(step: bool, pace: float | None) -> int:
    """Take a tour on the embedded broker; no server is needed.

    Covers typed properties, selectors, a browser, a durable subscription, redelivery and dead letters. Each chapter
    shows its source and, below it, the output as the source runs.
    """
    from jmsaio.demo import tour

    console = Console(highlight=False, emoji=False)
    if console.width > _WIDTH or not console.is_terminal:
        console = Console(highlight=False, emoji=False, width=_WIDTH)
    pause = pace if pace is not None else _PACE if console.is_terminal else 0.0

    def rule(text: str) -> None:
        console.print()
        console.rule(Text(text, style="bold cyan"), align="left")

    async def say(text: str) -> None:
        console.print(Text.assemble(("  > ", "bold green"), text))
        await asyncio.sleep(pause)

    async def show(number: int, chapter: Chapter) -> Say:
        if step:
            await asyncio.to_thread(click.pause, "press Enter to continue")
        rule(f"{number}  {chapter.title}")
        console.print(Text(chapter.text))
        code = Syntax(chapter.code, "python", theme="ansi_dark", background_color="default", word_wrap=True)
        console.print(Padding(Panel(code, border_style="dim", expand=False), (1, 0, 1, 0)))
        await asyncio.sleep(pause * 2)
        return say

    asyncio.run(tour(show))
    rule("Where to go from here")
    for command, what in _NEXT:
        console.print(Text.assemble((f"  {command:28}", "bold"), what))
    return OK
