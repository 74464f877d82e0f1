"""Runs the Java program that writes the golden files.

``python -m tests.java.golden CLASSPATH SERVICE_URL WEB_URL`` writes the committed ones anew; CLASSPATH has the Java
client and the compiled programs of this folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from jmsaio.launcher import tools
from tests.codec.cases import all_cases

GOLDEN = Path(__file__).parents[1] / "codec" / "golden"
#: Seconds for one run.
TIMEOUT = 110


def write_golden_files(classpath: str, service_url: str, web_url: str, target: Path) -> None:
    """Let the real Java client send every case, and write what stands on the wire.

    Raises:
        RuntimeError: the program failed; with its output.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, cases in all_cases().items():
            Path(folder, f"{name}.json").write_text(json.dumps(cases))
        java = [str(tools.find("java")), "-cp", classpath, "GoldenFiles"]
        command = [*java, service_url, web_url, f"golden-{uuid.uuid4()}", folder, str(target)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"GoldenFiles failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    classpath, service_url, web_url = sys.argv[1:]
    write_golden_files(classpath, service_url, web_url, GOLDEN)
