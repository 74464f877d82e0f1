"""One measurement in its own process: ``python -m jmsaio.bench.child RESULT_FILE``, the task on standard input.

A process of its own, because a measurement leaves things behind that the next one would feel: native threads, a grown
heap, a warm allocator. The result goes to a file, since native libraries write to standard output as they like. With
the result written the process ends at once, without the interpreter's own end: there the native threads of
``pulsar.asyncio``, which destroys the callback of ``close_async`` late, abort or crash it (seen in 4 of 60 runs on a
busy machine), and the row was measured by then.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

from jmsaio.bench.meter import Metrics
from jmsaio.bench.workload import Task

#: What measures: a function, or a coroutine function.
Target = Callable[[Task], Metrics | Coroutine[object, None, Metrics]]


def find_target(target: str) -> Target:
    """The function that ``module:function`` names. Raises ValueError, ImportError or AttributeError without one."""
    module, separator, function = target.partition(":")
    if not separator:
        raise ValueError(f"{target!r} is not of the form module:function")
    found: Target = getattr(importlib.import_module(module), function)
    return found


def require_loop(loop: str) -> None:
    """Make sure that an event loop is there, before minutes are spent on other rows.

    Raises:
        ImportError: uvloop is wanted and not installed.
    """
    if loop == "uvloop" and importlib.util.find_spec("uvloop") is None:
        raise ImportError("rows on uvloop need it: pip install 'jmsaio[uvloop]'")


def run_task(task: Task) -> Metrics:
    """Carry out ``task`` in this process, a coroutine function on the loop that the task names."""
    function = find_target(task.target)
    outcome = function(task)
    return dict(_run_on_loop(outcome, task.loop) if isinstance(outcome, Coroutine) else outcome)


def _run_on_loop(work: Coroutine[object, None, Metrics], loop: str) -> Metrics:
    if loop == "uvloop":
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(work)
    return asyncio.run(work)


def main(arguments: list[str], task_text: str) -> None:
    """Read the task, carry it out, write its metrics as JSON to the file that is named first."""
    metrics = run_task(Task.from_json(json.loads(task_text)))
    Path(arguments[0]).write_text(json.dumps(metrics), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:], sys.stdin.read())
    os._exit(0)
