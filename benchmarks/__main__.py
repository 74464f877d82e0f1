"""``python -m benchmarks [URL]``: the table, the JSON file and the picture of jmsaio beside its peers."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import attrs

from benchmarks.broker import java_jars, started_broker
from benchmarks.catalog import all_scenarios, beside_uvloop, jmsaio_url
from benchmarks.child import require_loop
from benchmarks.java_peer import JavaError, compile_program
from benchmarks.plot import require_matplotlib, write_plot
from benchmarks.report import write_json
from benchmarks.runner import Measure, Progress, measure, run, select
from benchmarks.scenario import Scenario
from benchmarks.spark.catalog import reason_without, spark_scenarios
from benchmarks.table import render_table
from benchmarks.workload import Workload
from jmsaio.launcher import LauncherError


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the command line. Ends the process for a wrong one, as argparse does."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures jmsaio beside raw pulsar-client, pulsar.asyncio and the Java peer. Without URL and "
        "--broker only what needs no broker: the embedded broker, selectors, idle consumers.",
    )
    parser.add_argument("url", nargs="?", help="broker to measure, for example pulsar://127.0.0.1:6650")
    parser.add_argument("--web-url", help="its web address (default: port 8080 of the same host)")
    parser.add_argument("--broker", action="store_true", help="start a broker for the run (needs a JDK and Maven)")
    parser.add_argument("--java-jars", type=Path, metavar="DIR", help="folder with the Java client's jars")
    parser.add_argument("--no-java", action="store_true", help="leave the Java peer out")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (default 5, with --smoke 1)")
    parser.add_argument("--smoke", action="store_true", help="tiny amounts: shows that every row runs")
    parser.add_argument("--spark", action="store_true", help="with the rows of Spark (pip install 'jmsaio[spark]')")
    parser.add_argument("--spark-messages", type=int, metavar="N", help="messages of a row of Spark (default 200000)")
    parser.add_argument(
        "--filtered-messages", type=int, metavar="N", help="messages of which one in 1000 matches (default 100000)"
    )
    parser.add_argument("--only", metavar="REGEX", help="only rows whose name matches")
    parser.add_argument("--loop", choices=["asyncio", "uvloop"], default="asyncio", help="loop of the asyncio rows")
    parser.add_argument("--uvloop", action="store_true", help="with each asyncio row also the same row on uvloop")
    parser.add_argument("--json-file", metavar="FILE", help="write all samples and the summary")
    parser.add_argument("--plot", metavar="FILE", help="draw the result (png, svg or pdf)")
    parser.add_argument("--check", action="store_true", help="exit status 1 when a goal is missed")
    return parser.parse_args(arguments)


@contextlib.contextmanager
def class_path(jars: Sequence[Path]) -> Iterator[str | None]:
    """Return the class path of the compiled Java program while the context lasts, or None without jars."""
    if not jars:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="jmsaio-java-") as folder:
        yield compile_program(jars, Path(folder))


def web_url_of(url: str) -> str:
    """Return the web address that a broker has by default: port 8080 of the first host."""
    return f"http://{urlsplit(url.partition(',')[0]).hostname}:8080"


def tell(progress: Progress) -> None:
    """One line on standard error before each measurement."""
    if progress.scenario is not None:
        place = f"{progress.done + 1}/{progress.total}"
        print(f"[{place}] round {progress.round + 1}: {progress.scenario.name}", file=sys.stderr, flush=True)


def _workload(options: argparse.Namespace) -> Workload:
    usual = Workload.smoke() if options.smoke else Workload()
    given = {"spark_messages": options.spark_messages, "filtered_messages": options.filtered_messages}
    return attrs.evolve(usual, **{name: value for name, value in given.items() if value is not None})


@contextlib.contextmanager
def _carrying_out(spark: bool) -> Iterator[Measure]:
    """Return the executor of tasks, those of Spark included if they were requested."""
    if not spark:
        yield measure
        return
    from benchmarks.spark.session import SessionRun

    with SessionRun() as session:
        yield session


def _measure(options: argparse.Namespace, scenarios: Sequence[Scenario], carry_out: Measure) -> int:
    """Measure, write what was asked for, and return the exit status. Check first what would end it later."""
    chosen = select(scenarios, options.only)
    for loop in {scenario.loop or options.loop for scenario in chosen}:
        require_loop(loop)
    if options.plot:
        require_matplotlib()
    rounds = (1 if options.smoke else 5) if options.rounds is None else options.rounds
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, not {rounds}")
    report = run(chosen, rounds, _workload(options), options.loop, tell, carry_out)
    if options.json_file:
        write_json(report, options.json_file)
    if options.plot:
        write_plot(report, options.plot)
    columns = shutil.get_terminal_size((120, 24)).columns
    print(render_table(report, width=max(100, columns), color=sys.stdout.isatty()))
    missed = report.missed()
    for goal in missed if options.check else ():
        print(f"missed: {attrs.asdict(goal)}", file=sys.stderr)
    return 1 if report.failures() or (options.check and missed) else 0


def _spark_scenarios(url: str | None, web_url: str | None) -> list[Scenario]:
    """Return the rows of Spark. Raises ValueError without a broker, or without Spark."""
    if url is None or web_url is None:
        raise ValueError("--spark needs a broker: give its URL, or --broker")
    reason = reason_without()
    if reason is not None:
        raise ValueError(reason)
    return spark_scenarios(url, jmsaio_url(url, web_url))


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark. Exit status: 0, 1 when a measurement failed (or, with --check, a goal), 2 for wrong use."""
    options = parse(arguments)
    try:
        with contextlib.ExitStack() as stack:
            url, web_url = options.url, options.web_url
            if options.broker:
                broker = stack.enter_context(started_broker())
                url, web_url = broker.service_url, broker.web_service_url
            wants_java = url is not None and not options.no_java
            java = stack.enter_context(class_path(java_jars(options.java_jars) if wants_java else []))
            if url is not None and web_url is None:
                web_url = web_url_of(url)
            scenarios = all_scenarios(url, web_url or "", java)
            if options.uvloop:
                if options.loop == "uvloop":
                    raise ValueError("--uvloop measures it beside asyncio: leave --loop uvloop out")
                scenarios = beside_uvloop(scenarios)
            if options.spark:
                scenarios += _spark_scenarios(url, web_url)
            return _measure(options, scenarios, stack.enter_context(_carrying_out(options.spark)))
    except (ValueError, ImportError, JavaError, LauncherError, OSError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
