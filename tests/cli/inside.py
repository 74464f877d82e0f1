"""Runs a command in the test's own process and loop, which also has the embedded broker that ``main`` refuses."""

from __future__ import annotations

import inspect
from typing import Any

import click

from jmsaio.cli.common.output import Output


async def run_inside(
    command: click.Command, config: dict[str, Any], *arguments: str, output: Output | None = None
) -> int:
    """Parse the arguments, and await the command with this configuration; return its exit code.

    ``output`` replaces that of the arguments, which is JSON where nothing is a terminal.
    """
    with command.make_context(command.name, [*arguments]) as context:
        given = {name: value for name, value in context.params.items() if name not in ("url", "settings")}
        if output is not None:
            given["output"] = output
        assert command.callback is not None
        code: int = await inspect.unwrap(command.callback)(source=dict(config), **given)
        return code
