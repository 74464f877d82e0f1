"""How Spark finds the data source by its name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

import jmsaio.spark

ROOT = Path(__file__).parents[3]
DISCOVERY = ROOT / "jmsaio" / "spark" / "discovery"


def run(code: str, *path: Path, **environ: str) -> str:
    """What a Python process prints that finds modules in these folders, too."""
    folders = os.pathsep.join(map(str, (*path, ROOT)))
    environment = {**os.environ, "PYTHONPATH": folders, **environ}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=100, check=True
    )
    return done.stdout.strip()


def test_the_module_offers_the_data_source_as_spark_looks_for_it() -> None:
    code = "import pyspark_jms; print(pyspark_jms.DefaultSource.name(), pyspark_jms.__all__)"
    assert run(code, DISCOVERY) == "jms ['DefaultSource']"
    assert pyspark.__version__


def test_the_module_is_imported_without_an_error_where_something_is_missing(tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text("raise RuntimeError('broken')")
    code = "import pyspark_jms; print(hasattr(pyspark_jms, 'DefaultSource'), pyspark_jms.__all__)"
    assert run(code, tmp_path, DISCOVERY) == "False []"


def test_importing_the_package_loads_neither_pyspark_nor_pyarrow() -> None:
    code = "import sys, jmsaio, jmsaio.spark; print([name for name in ('pyspark', 'pyarrow') if name in sys.modules])"
    assert run(code) == "[]"
    assert jmsaio.spark.__all__


def test_a_session_is_told_what_is_missing_when_the_source_is_registered(tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text("raise ImportError('no pyarrow here')")
    code = "import jmsaio.spark\ntry:\n    jmsaio.spark.register(None)\nexcept ImportError as error:\n    print(error)"
    assert run(code, tmp_path) == "no pyarrow here"
