"""One measurement in its own process: ``python -m benchmarks.child RESULT_FILE``, the task on standard input.

A measurement affects later ones in the same process: native threads, a grown heap, a warm allocator. The result is
written to a file, since native libraries write to standard output. Then the process exits at once, without finalizing
the interpreter: the native threads of ``pulsar.asyncio``, which destroys the callback of ``close_async`` late, would
abort or crash it (seen in 4 of 60 runs on a busy machine), after the row was measured.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path

from benchmarks.meter import Metrics
from benchmarks.workload import Task
from jmsaio.model.arguments import shown

#: Function or coroutine function that measures.
Target = Callable[[Task], Metrics | Coroutine[object, None, Metrics]]


def find_target(target: str) -> Target:
    """Import the function ``module:function``. Raises ValueError, ImportError or AttributeError if there is none."""
    module, separator, function = target.partition(":")
    if not separator:
        raise ValueError(f"{shown(target)} is not of the form module:function")
    found: Target = getattr(importlib.import_module(module), function)
    return found


def require_loop(loop: str) -> None:
    """Check that an event loop is available, before other rows take minutes.

    Raises:
        ImportError: ``loop`` is uvloop, which is not installed.
    """
    if loop == "uvloop" and importlib.util.find_spec("uvloop") is None:
        raise ImportError("rows on uvloop need it: pip install 'jmsaio[uvloop]'")


def run_task(task: Task) -> Metrics:
    """Run ``task`` in this process; a coroutine function runs on the task's loop."""
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
    """Read the task, run it, and write its metrics as JSON to the file in the first argument."""
    metrics = run_task(Task.from_json(json.loads(task_text)))
    Path(arguments[0]).write_text(json.dumps(metrics), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:], sys.stdin.read())
    os._exit(0)
