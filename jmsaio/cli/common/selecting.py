"""Options with which several commands select destinations, messages and dead letters; adding several to a command."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import click

from jmsaio.model.destination_text import with_kind
from jmsaio.model.durations import TEN_YEARS

P = ParamSpec("P")
T = TypeVar("T")


class Number(click.FloatRange):
    """A number of seconds or the like within limits; nan and infinity are refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; click reports an error as wrong usage."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        if number > TEN_YEARS:
            self.fail(f"{value} is too large.", param, ctx)
        return number


topic_option = click.option("-t", "--topic", is_flag=True, help="The destination is a topic; default: a queue.")
selector_option = click.option("-s", "--selector", metavar="SELECTOR", help="Only messages that match this selector.")
create_option = click.option("--create", is_flag=True, help="Create the destination if it does not exist.")
of_option = click.option(
    "--of",
    metavar="SUBSCRIPTION",
    help="Use the dead letters of this subscription of DESTINATION, such as jms-queue.",
)


def with_options(command: Callable[P, T], *options: Callable[[Any], Any]) -> Callable[P, T]:
    """Add options and arguments to a command, which shows them in this order."""
    return functools.reduce(lambda done, option: option(done), reversed(options), command)


def target_options(command: Callable[P, T]) -> Callable[P, T]:
    """Add the options that say where a redrive sends dead letters, and how often."""
    to = click.option(
        "--to", metavar="DESTINATION",
        help="Send all letters to this destination; default: the one that each failed on.",
    )  # fmt: skip
    most = click.option(
        "--max-redrives", type=click.IntRange(min=1), default=3, show_default=True, metavar="N",
        help="Skip messages that were already redriven N times.",
    )  # fmt: skip
    return with_options(command, to, most)


def full_name(name: str, topic: bool) -> str:
    """Add the kind to a destination's name, unless the name includes it."""
    return with_kind(name, "topic" if topic else "queue")
