"""The command group ``jmsaio spark``."""

from __future__ import annotations

import click

from jmsaio.cli.common.output import show_help_alone
from jmsaio.cli.spark.archive import archive
from jmsaio.cli.spark.check import check
from jmsaio.cli.spark.cleanup import cleanup
from jmsaio.cli.spark.dlq import dlq
from jmsaio.cli.spark.replay import replay
from jmsaio.cli.spark.status import status


@click.group(invoke_without_command=True)
@click.pass_context
def spark(context: click.Context) -> None:
    """Archive messages in Parquet files, replay archives, and redrive dead letters, with Apache Spark.

    Needs Java and pip install 'jmsaio[spark]'; 'jmsaio spark check' reports what is missing. Runs on this machine by
    default, or on a cluster under spark-submit or with --master.

    The exit code is 4 if messages were lost, and 5 if something was left out.
    """
    show_help_alone(context)


for command in (check, archive, status, replay, dlq, cleanup):
    spark.add_command(command)
