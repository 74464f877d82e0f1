"""The entry point of the command line: the command group, and errors as sentences without a traceback."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import click

from jmsaio.cli.broker import broker
from jmsaio.cli.common.output import BROKEN_PIPE, DATA_LOSS, ERROR, INTERRUPTED, OK, USAGE, show_help_alone
from jmsaio.cli.dlq import dlq
from jmsaio.cli.doctor import doctor
from jmsaio.cli.guide import guide
from jmsaio.cli.receive import browse, receive
from jmsaio.cli.send import SendingStopped, send
from jmsaio.cli.spark.group import spark
from jmsaio.cli.states import queues, stats, topics
from jmsaio.cli.subscription import subscriptions
from jmsaio.cli.sweep import sweep
from jmsaio.cli.tour import demo
from jmsaio.cli.transfer import copy, move, purge
from jmsaio.errors import (
    BrokerUnavailableError,
    ConfigurationError,
    ConsumerBusyError,
    DataLossError,
    InvalidSelectorError,
    JMSError,
    JMSSecurityError,
    OperationTimeoutError,
)
from jmsaio.model.arguments import WIDTH, brief
from jmsaio.model.version import __version__

#: Advice by class of error; the first match wins.
_ADVICE: tuple[tuple[type[Exception], str], ...] = (
    (BrokerUnavailableError, "is a broker running there? 'jmsaio broker start' starts one on this machine"),
    (OperationTimeoutError, "the broker is reachable but slow or stuck; check a local one with 'jmsaio broker status'"),
    (ConfigurationError, "all options: 'jmsaio guide configuration'"),
    (InvalidSelectorError, "the language: 'jmsaio guide selectors'"),
    (JMSSecurityError, "every error of this kind: 'jmsaio guide security'"),
    (
        ConsumerBusyError,
        "another consumer holds this subscription; with 'receive --shared NAME' several consumers share one",
    ),
)


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 error, 2 wrong usage, 3 nothing found, 4 messages lost, 5 something left out, "
    "130 interrupted, 141 output pipe closed. On a terminal the commands write text, otherwise (or with --json) JSON "
    "lines.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, "--version", prog_name="jmsaio")
@click.pass_context
def app(context: click.Context, debug: bool) -> None:
    """JMS for asyncio on Apache Pulsar, from the command line. Start with 'jmsaio demo': it needs no server."""
    context.ensure_object(dict)["debug"] = debug
    show_help_alone(context)


for command in (
    demo, send, receive, browse, broker, doctor, queues, topics, stats, subscriptions, move,
    copy, purge, dlq, sweep, spark, guide,
):  # fmt: skip
    app.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with ``arguments``, by default the process's; return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    noted: dict[str, bool] = {}
    try:
        result = app.main(given, prog_name="jmsaio", standalone_mode=False, obj=noted)
    except click.Abort:
        return _complain("interrupted", INTERRUPTED)
    except click.ClickException as error:
        return _complain(_shortened(_usage(error), given), error.exit_code)
    except SystemExit:  # raised by click when the reader of the output, such as head, has exited
        return BROKEN_PIPE
    except Exception as error:
        if noted.get("debug"):
            traceback.print_exc()
            return _code(error)
        return _complain(_shortened(_sentence(error), given), _code(error))
    return result if isinstance(result, int) else OK


def _shortened(text: str, arguments: Sequence[str]) -> str:
    """Shorten long arguments, and values of options, that click or the operating system repeat whole."""
    for argument in arguments:
        for long in (argument, argument.partition("=")[2]):
            if len(long) > WIDTH:
                for quoted in (long, repr(long)[1:-1], click.format_filename(long)):
                    text = text.replace(quoted, brief(long))
    return text


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "jmsaio"
    return _with_advice(error.format_message(), f"see '{path} --help'")


def _code(error: Exception) -> int:
    if isinstance(error, DataLossError):
        return DATA_LOSS
    return USAGE if isinstance(error, ConfigurationError | InvalidSelectorError) else ERROR


def _sentence(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    if not isinstance(error, JMSError | ValueError | OSError):
        return f"{type(error).__name__}: {text} (this is a bug in jmsaio; 'jmsaio --debug ...' shows the traceback)"
    cause = error.__cause__ if isinstance(error, SendingStopped) else error
    advice = next((advice for kind, advice in _ADVICE if isinstance(cause, kind)), "")
    return _with_advice(text, advice) if advice else text


def _with_advice(text: str, advice: str) -> str:
    """Append advice to a single line, or below several lines, since a caret among them can point at a line above."""
    return f"{text}\n({advice})" if "\n" in text else f"{text} ({advice})"


def _complain(text: str, code: int) -> int:
    click.echo(f"jmsaio: {text}", err=True)
    return code
