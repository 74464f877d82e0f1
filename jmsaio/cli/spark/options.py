"""Options shared by commands of ``jmsaio spark``, and the conversion of their values."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, ParamSpec, TypeVar

import click

from jmsaio.cli.common.connecting import read_connection, with_options
from jmsaio.cli.common.output import json_option
from jmsaio.errors import JMSError
from jmsaio.model.arguments import shown

P = ParamSpec("P")
T = TypeVar("T")

#: Packages of the extra.
_EXTRA: Final = ("pyspark", "pyarrow")


#: A URL whose credentials would be shown, in one of its parts.
_SECRET: Final = re.compile(r"[^:]+://[^/]*:[^/]*@|[^:]+://.*[?#]", re.DOTALL)


class _Folder(click.ParamType[str]):
    """A folder: the absolute path, or the URL in a file system that Spark reaches."""

    name = "folder"

    def convert(self, value: str, parameter: click.Parameter | None, context: click.Context | None) -> str:
        if _SECRET.match(value):
            self.fail("a URL has no credentials and no options: give them to Spark with --conf, or in the environment")
        return value.rstrip("/") if "://" in value else os.path.abspath(value)


FOLDER: Final = _Folder()


def needs_extra(command: Callable[P, T]) -> Callable[P, T]:
    """Refuse the command if Spark is not installed."""

    @functools.wraps(command)
    def run(*arguments: P.args, **options: P.kwargs) -> T:
        if any(importlib.util.find_spec(name) is None for name in _EXTRA):
            raise JMSError("Spark is not installed: pip install 'jmsaio[spark]'")
        return command(*arguments, **options)

    return run


def session_options(command: Callable[P, T]) -> Callable[P, T]:
    """Add the options of a session, and refuse the command if Spark is not installed."""
    return with_options(
        needs_extra(command),
        click.option(
            "--master", default="local[2]", show_default=True, metavar="URL", help="Spark master that runs the tasks."
        ),
        click.option("--conf", "conf", multiple=True, metavar="NAME=VALUE", help="A Spark setting. Repeatable."),
        json_option,
    )


def read_source(url: str | None, settings: tuple[str, ...]) -> dict[str, str]:
    """Return the options of the data source that name and configure the broker, from ``--url`` and ``--option``."""
    flat = dict(_flat(read_connection(url, settings)))
    broker = flat.pop("brokerServiceUrl", None) or flat.pop("service_url")
    return {"url": broker, **flat}


def _flat(settings: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Flatten nested maps to dotted names, and convert values to text."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value).lower() if isinstance(value, bool) else str(value)


def pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """Parse the values of a repeated option of the form A=B into a map; raise click.UsageError for another form."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise click.UsageError(f"{option} needs A=B, not {shown(text)}")
        found[name] = value
    return found
