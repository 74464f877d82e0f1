"""Tests that can't run here are left out in one place, and the run says so; with CI=true it fails."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).parents[1]
FILES = ["tests/launcher/test_fixture.py", "tests/launcher/test_errors.py"]
pytestmark = pytest.mark.xdist_group("runs of pytest")  # they share the process that begins them


@pytest.fixture(scope="module")
def pytest_process() -> Iterator[subprocess.Popen[str]]:
    """Runs pytest for `run`; what takes long, the imports, it does once."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.prepared_pytest"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        yield process
        process.kill()


@attrs.frozen
class Done:
    """What came of a test run."""

    returncode: int
    stdout: str


Run = Callable[..., Done]
#: Keeps thousands of tests out of a collection that does not need them.
FEWER = [f"--ignore=tests/{name}" for name in ("client", "codec", "config", "conformance", "model", "selector")]


@pytest.fixture
def run(pytest_process: subprocess.Popen[str], tmp_path: Path) -> Run:
    """``run(*arguments, **environ)``: a test run of its own on a machine without Java and Maven."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("JMSAIO_", "JAVA_", "MAVEN_", "CI"))}
    output = tmp_path / "output"

    def run(*arguments: str, files: Sequence[str] = FILES, **environ: str) -> Done:
        assert pytest_process.stdin is not None and pytest_process.stdout is not None
        request = {
            "arguments": ["-p", "no:cacheprovider", "--color=no", *files, *arguments],
            "environ": kept | {"PATH": str(tmp_path)} | environ,
            "output": str(output),
        }
        print(json.dumps(request), file=pytest_process.stdin, flush=True)
        return Done(int(pytest_process.stdout.readline()), output.read_text(encoding="utf-8"))

    return run


def note(output: str) -> str:
    (line,) = [line for line in output.splitlines() if line.startswith("NOT TESTED")]
    return line


def test_without_java_the_rest_runs_and_the_summary_says_what_does_not(run: Run) -> None:
    done = run()
    assert done.returncode == 0, done.stdout
    assert "6 passed, 3 deselected" in done.stdout
    line = note(done.stdout)
    assert line.startswith("NOT TESTED: 3 tests with the real Pulsar broker and the Java client: a JDK 17 or newer")
    assert "Apache Maven" in line
    assert "failure" not in line


def test_in_ci_that_is_a_failure(run: Run) -> None:
    done = run(CI="true")
    assert done.returncode == 1
    assert note(done.stdout).endswith("this is a failure because CI=true")


def test_nothing_is_missing_when_nothing_of_it_is_selected(run: Run) -> None:
    for selection in (["-m", "not broker and not java"], ["-k", "carry_their_data"]):
        done = run(*selection, CI="true")
        assert done.returncode == 0, done.stdout
        assert "NOT TESTED" not in done.stdout


def test_tests_of_the_pure_layers_are_the_fast_ones(run: Run) -> None:
    done = run("tests/rules/test_priority.py", "-m", "fast", "--collect-only", "-q")
    selected = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert selected == {"tests/rules/test_priority.py"}, "the others are the launcher's"


def test_a_run_that_names_no_test_has_the_default_tier(run: Run) -> None:
    done = run("--collect-only", "-q", "-n0", *FEWER, files=())
    collected = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert {
        "tests/rules/test_priority.py",
        "tests/launcher/test_errors.py",
        "tests/interop/test_matrix.py",
    } <= collected
    assert collected.isdisjoint(
        {"tests/test_conftest.py", "tests/spark/test_kill.py", "tests/transport/pulsar/test_faults.py"}
    )
    assert "The default tier: `pytest --full` runs every test." in done.stdout


@pytest.mark.parametrize("arguments", [("--full",), ("-m", "broker or not broker"), ("-k", "a")])
def test_a_run_that_asks_for_tests_has_all_of_them(run: Run, arguments: tuple[str, ...]) -> None:
    done = run("--collect-only", "-q", "-n0", *arguments, "--ignore=tests/spark", files=("tests/launcher",))
    assert "test_session_broker_answers" in done.stdout
    assert "The default tier" not in done.stdout


@pytest.mark.java
def test_a_broker_that_can_not_start_is_one_error(run: Run, tmp_path: Path) -> None:
    real = shutil.which("java")
    java = tmp_path / "java"
    java.write_text(f"""#!/bin/sh
case "$*" in *org.apache.pulsar*) echo 'no room for this broker'; exit 1;; esac
exec {real} "$@"
""")
    java.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    files = ["tests/conformance/test_sessions.py", "tests/launcher/test_errors.py"]
    done = run("-n2", "-rs", files=files, PATH=path)
    assert done.returncode == 1
    assert "1 error" in done.stdout.splitlines()[-1], done.stdout
    assert "no room for this broker" in done.stdout
    assert "this broker did not start, as the error of another test says" in done.stdout


def test_a_broker_that_runs_already_needs_no_java(run: Run) -> None:
    urls = {"JMSAIO_TEST_SERVICE_URL": "pulsar://127.0.0.1:1", "JMSAIO_TEST_WEB_URL": "http://127.0.0.1:1"}
    done = run("--collect-only", "-q", **urls)
    assert done.returncode == 0, done.stdout
    done = run(**urls)
    assert "2 deselected" in done.stdout
    assert "test_session_broker_answers" in done.stdout, "it ran, and nobody answered"
    assert note(done.stdout).startswith("NOT TESTED: 2 tests")


def test_several_processes_leave_out_the_same_and_say_so_once(run: Run) -> None:
    done = run("-n2", CI="true")
    assert done.returncode == 1, done.stdout
    assert "created: 2/2 workers" in done.stdout
    assert note(done.stdout).startswith("NOT TESTED: 3 tests with the real Pulsar broker and the Java client")
    assert done.stdout.splitlines()[-1].strip("= ").startswith("6 passed in ")


@pytest.mark.java
def test_a_failing_download_is_named(run: Run, tmp_path: Path) -> None:
    maven = tmp_path / "mvn"
    maven.write_text(
        "#!/bin/sh\n"
        "if [ \"$1\" = --version ]; then echo 'Apache Maven 3.9.9'; exit 0; fi\n"
        "echo '[ERROR] no route'; exit 1\n"
    )
    maven.chmod(0o755)
    java = {key: value for key, value in os.environ.items() if key.startswith("JAVA_")}
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = run(PATH=path, JMSAIO_CACHE=str(tmp_path / "empty"), **java)
    assert done.returncode == 0, done.stdout
    assert "Maven could not fetch Apache Pulsar" in note(done.stdout)
    assert "no route" in note(done.stdout)


def test_a_broker_never_outlives_the_test_run() -> None:
    """Even when the run is killed: here by itself, with sleeping processes in the brokers' place."""
    code = (
        "import os, signal, subprocess, sys\n"
        "from tests.support.watcher import tell_watcher\n"
        "sleeper = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "runs = subprocess.Popen(sleeper, start_new_session=True)\n"
        "ended = subprocess.Popen(sleeper, start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "tell_watcher('runs', runs.pid), tell_watcher('runs', ended.pid), tell_watcher('ended', ended.pid)\n"
        "print(ended.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,  # it ends when all that inherited it have ended, `runs` among them
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    os.killpg(int(done.stdout), signal.SIGKILL)  # its end had been told: its number may be somebody else's by now


def test_what_a_worker_started_ends_with_the_whole_run(tmp_path: Path) -> None:
    """Not with the worker: others use its broker."""
    worker = (
        "import subprocess, sys\n"
        "from pathlib import Path\n"
        "from tests.support.watcher import join, tell_watcher\n"
        "join(Path(sys.argv[1]))\n"
        "sleeper = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "tell_watcher('runs', sleeper.pid)\n"
        "Path(sys.argv[2]).write_text(str(sleeper.pid))\n"
    )
    controller = (
        "import os, subprocess, sys, time\n"
        "from pathlib import Path\n"
        "from tests.support.watcher import journal\n"
        f"subprocess.run([sys.executable, '-c', {worker!r}, str(journal()), sys.argv[1]], check=True)\n"
        "time.sleep(0.5)\n"
        "os.kill(int(Path(sys.argv[1]).read_text()), 0)\n"
        "print('still there', flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", controller, str(tmp_path / "pid")],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,  # it ends when all that inherited it have ended, the sleeper among them
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "still there\n")


def test_without_spark_its_files_are_left_out_and_the_summary_says_so(run: Run) -> None:
    arguments = ("tests/spark", "-p", "tests.support.without_spark", "--collect-only", "-q")
    done = run(*arguments)
    assert done.returncode == 0, done.stdout
    assert "test_schema.py" in done.stdout and "test_columns.py" not in done.stdout
    assert " files of tests with Spark: no pyarrow and pyspark; run pip install '.[test,check,spark]'" in note(
        done.stdout
    )
    done = run(*arguments, CI="true")
    assert done.returncode == 1
    assert note(done.stdout).endswith("this is a failure because CI=true")


def test_the_fast_tier_needs_no_spark(run: Run) -> None:
    """Those left out here run without Spark, too, in the step ``fast`` of CI."""
    arguments = ("-m", "fast", "-p", "tests.support.without_spark", "--collect-only", "-q", "-n0", *FEWER)
    done = run("tests", *arguments, CI="true")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "NOT TESTED" not in done.stdout
