"""The Java peer: compiles ``java/Bench.java`` once and runs it, one virtual machine for each measurement.

The virtual machine repeats the workload; its last round counts, when the code is compiled and warm.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.meter import Metrics
from benchmarks.transactions import Shape
from benchmarks.workload import Task

#: Name of the task's extra that holds the class path, with the compiled program in front.
CLASS_PATH = "class_path"
#: Name of the task's extra that holds the broker's web address.
WEB_URL = "web_url"
SOURCE = Path(__file__).parent / "java" / "Bench.java"
_MARK = "RESULT "


class JavaError(Exception):
    """The Java program could not be compiled or run."""


def compile_program(jars: Sequence[Path], folder: Path) -> str:
    """Compile the program into ``folder`` against the client's ``jars``; returns the class path.

    Raises JavaError when the compiler refuses.
    """
    libraries = [str(jar) for jar in jars]
    done = subprocess.run(
        ["javac", "-d", str(folder), "-cp", os.pathsep.join(libraries), str(SOURCE)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode != 0:
        raise JavaError(f"javac failed:\n{done.stderr}")
    return os.pathsep.join([str(folder), *libraries])


def _run(task: Task, action: str, **more: object) -> Metrics:
    work = task.workload
    options = {
        "url": task.url,
        "webUrl": task.extra[WEB_URL],
        "topic": task.topic,
        "rounds": min(work.jvm_rounds, 2) if action == "latency" else work.jvm_rounds,
        "messages": work.messages,
        "characters": work.characters,
        "window": work.window,
        "batchMessages": work.batch_messages,
        "batchDelayMicros": round(work.batch_delay * 1e6),
        "rate": work.rate,
        "warmMessages": work.warm_messages,
        "latencyMessages": int(work.rate * work.seconds),
        **more,
    }
    done = subprocess.run(
        ["java", "-cp", task.extra[CLASS_PATH], "Bench", action, *(f"{k}={v}" for k, v in options.items())],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if done.returncode != 0 or not lines:
        raise JavaError(f"exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    metrics: Metrics = json.loads(lines[-1].removeprefix(_MARK))
    return metrics


def send(task: Task) -> Metrics:
    """Send with a CompletionListener; the warm round."""
    return _run(task, "send")


def receive(task: Task) -> Metrics:
    """Receive in AUTO_ACKNOWLEDGE, text and int read; the warm round."""
    return _run(task, "receive")


def latency(task: Task) -> Metrics:
    """Send at a fixed rate to a thread that receives, in one JVM; the second round, each as long as the other rows."""
    return _run(task, "latency")


def transactions(task: Task) -> Metrics:
    """Receive and send in transactions, as ``benchmarks.transactions``; the warm round."""
    shape = Shape.of(task)
    return _run(task, "transactions", sessions=shape.sessions, each=shape.each, group=shape.messages)
