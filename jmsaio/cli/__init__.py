"""The ``jmsaio`` command: demo, send, receive, browse, bench, broker, doctor, sweep, spark, guide. click and rich are
imported only here.

Exit codes: 0 done, 1 error, 2 wrong usage (an argument, an option, a configuration), 3 nothing found (no message to
receive or browse, no broker running), 4 stored messages are lost, 5 something was left out (a job of Spark),
130 interrupted, 141 the reader of the output is gone.
"""

from jmsaio.cli.app import main

__all__ = ["main"]
