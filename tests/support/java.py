"""The real Java client for tests: jars from Maven, and the peers' programs compiled once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jmsaio import launcher
from jmsaio.launcher import tools
from jmsaio.launcher.state import locked

#: Seconds that the compiler may take.
COMPILE_TIMEOUT = 100


def class_path(*parts: Path | str) -> str:
    """The parts as one class path."""
    return os.pathsep.join(str(part) for part in parts)


def compile_java(sources: Sequence[Path], classpath: str) -> Path:
    """The folder with the compiled classes of these sources; compiled only when a source or the class path changed.

    Raises:
        RuntimeError: the compiler refuses them; with its output.
    """
    digest = hashlib.sha256(classpath.encode())
    for source in sorted(sources):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    home = launcher.cache_directory() / "java-classes"
    target = home / digest.hexdigest()[:24]
    with locked(home / "lock"):
        if not target.exists():
            part = Path(tempfile.mkdtemp(prefix="part-", dir=home))
            try:
                if sources:
                    _javac(sources, classpath, part)
                part.rename(target)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    return target


def _javac(sources: Sequence[Path], classpath: str, target: Path) -> None:
    """Run the compiler."""
    names = [str(source) for source in sources]
    done = subprocess.run(
        [str(tools.find("javac")), "-nowarn", "-encoding", "UTF-8", "-cp", classpath, "-d", str(target), *names],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMPILE_TIMEOUT,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"javac failed:\n{done.stdout}{done.stderr}")
