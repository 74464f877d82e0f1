"""What commands of Spark share: options, the session with its progress line, and the summary."""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from jmsaio.cli.common.connecting import Command, Source, pairs, with_options
from jmsaio.cli.common.output import Output, json_option
from jmsaio.config.declaring import flatten
from jmsaio.errors import JMSError
from jmsaio.spark.jobs.failures import reason_of

#: Packages of the extra.
_EXTRA: Final = ("pyspark", "pyarrow")


#: A URL whose credentials would be shown, in one of its parts.
_SECRET: Final = re.compile(r"[^:]+://[^/]*:[^/]*@|[^:]+://.*[?#]", re.DOTALL)


class _Folder(click.ParamType):  # type: ignore[type-arg]  # it is not generic in older versions of click
    """A folder: the absolute path, or the URL in a file system that Spark reaches."""

    name = "folder"

    def convert(self, value: str, parameter: click.Parameter | None, context: click.Context | None) -> str:
        if _SECRET.match(value):
            self.fail("a URL has no credentials and no options: give them to Spark with --conf, or in the environment")
        return value.rstrip("/") if "://" in value else os.path.abspath(value)


FOLDER: Final = _Folder()


def needs_extra(command: Command) -> Command:
    """Refuse the command if Spark is not installed."""

    @functools.wraps(command)
    def run(**options: Any) -> Any:
        if any(importlib.util.find_spec(name) is None for name in _EXTRA):
            raise JMSError("Spark is not installed: pip install 'jmsaio[spark]'")
        return command(**options)

    return run


def session_options(command: Command) -> Command:
    """Add the options of a session, and refuse the command if Spark is not installed."""
    return with_options(
        needs_extra(command),
        click.option(
            "--master", default="local[2]", show_default=True, metavar="URL", help="Spark master that runs the tasks."
        ),
        click.option(
            "--conf", "conf", multiple=True, metavar="NAME=VALUE", callback=pairs, help="A Spark setting. Repeatable."
        ),
        json_option,
    )


def read_source(source: Source) -> dict[str, str]:
    """Return the options of the data source that name and configure the broker."""
    given = flatten(source)
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}
    broker = texts.pop("brokerServiceUrl", None) or texts.pop("service_url")
    return {"url": broker, **texts}


@contextmanager
def running(
    output: Output, master: str, settings: Mapping[str, str]
) -> Iterator[tuple[Any, Callable[[str], None]]]:  # fmt: skip
    """Yield a session, which ends with the block, and a function that sets the text of the progress line.

    Spark's errors become one sentence.
    """
    from jmsaio.spark.session import open_session

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()
    hidden = output.as_json or not output.remarks.is_terminal
    with _one_sentence(), Progress(*columns, console=output.remarks, transient=True, disable=hidden) as progress:
        task = progress.add_task("starting Spark", total=None)

        def show(text: str) -> None:
            progress.update(task, description=text)

        with open_session(master, settings) as session:
            show("working")
            yield session, show


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Convert Spark's errors to one sentence, with advice."""
    try:
        yield
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        advice = "'jmsaio spark check' checks Java, packages and the broker"
        raise JMSError(f"Spark failed: {reason_of(error)}; {advice}") from error
