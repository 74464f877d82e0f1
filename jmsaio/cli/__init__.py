"""The ``jmsaio`` command: demo, send, receive, browse, broker, doctor, queues, topics, stats,
subscriptions, move, copy, purge, dlq, sweep, spark, guide. click and rich are imported only here.

Exit codes: 0 done, 1 error, 2 wrong usage (an argument, an option, a configuration), 3 nothing found (no message to
receive or browse, no broker running), 4 stored messages lost, 5 something left out, 130 interrupted,
141 output pipe closed.
"""

from jmsaio.cli.app import main

__all__ = ["main"]
