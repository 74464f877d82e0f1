"""The installed package under ``spark-submit``, with executors of their own, and a secret that shows up nowhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pyspark
import pytest
from pyarrow import parquet

from tests.spark.session import ROOT
from tests.support.broker import TestBroker

CANARY = "canary-7d1f0c52a9"
FILE = "canary.txt"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what a wheel of this package holds; an editable installation has none yet."""
    found = distribution("jmsaio")
    if not json.loads(found.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable"):
        return Path(str(found.locate_file(""))).resolve()
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), str(ROOT)]
    subprocess.run(command, check=True, timeout=200)
    return folder


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    """Spark as it is installed, except that the executors' folders lie here."""
    home = tmp_path / "spark"
    home.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        if path.name != "work":
            (home / path.name).symlink_to(path)
    return home


@pytest.mark.slow
@pytest.mark.xdist_group("spark processes")  # sessions of their own, beside the shared one
@pytest.mark.timeout(400)
def test_the_wheel_works_by_name_on_executors_and_no_file_plan_log_error_or_repr_holds_the_secret(
    pulsar_broker: TestBroker, installed: Path, spark_home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "left"
    (folder / "events").mkdir(parents=True)
    (tmp_path / FILE).write_text(CANARY)
    told = submit(pulsar_broker.url, tmp_path / FILE, folder, installed, spark_home)
    for sign in ("Physical Plan", "numInputRows", "does not exist", "failed: ", "SourceOptions("):
        assert sign in told, told[-3000:]
    assert (folder / "checked").read_text() == f"0 {installed / 'jmsaio' / '__init__.py'}", told[-3000:]
    for name in ("rows", "files"):
        assert sorted(parquet.read_table(folder / name)["text"].to_pylist(), key=int) == [str(n) for n in range(20)]
    assert {"0", "1"} <= {path.name for path in spark_home.glob("work/*/*")}  # two executors
    assert {"events", "checkpoint", "files", "rows"} <= {path.name for path in folder.iterdir()}
    written = [path for place in (folder, spark_home / "work") for path in place.rglob("*") if path.is_file()]
    assert [str(path) for path in written if CANARY.encode() in path.read_bytes() and path.name != FILE] == []
    assert CANARY not in told
    assert f"file:{FILE}" in told  # the reference itself may be seen


def submit(url: str, secret: Path, folder: Path, installed: Path, home: Path) -> str:
    """Run ``canary.py`` on two executors; what it and Spark print."""
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.rolling.enabled": "false",
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "INFO",
        "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "1",
        "spark.ui.enabled": "false",
    }
    given = [word for item in settings.items() for word in ("--conf", "=".join(item))]
    submit = [str(home / "bin" / "spark-submit"), "--master", "local-cluster[2,1,1024]", "--files", str(secret), *given]
    environment = {
        **os.environ, "PYTHONPATH": str(installed), "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip
    done = subprocess.run(
        [*submit, str(Path(__file__).with_name("canary.py")), url, str(folder)], env=environment, cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=380, check=False,
    )  # fmt: skip
    return done.stdout.decode(errors="replace")
