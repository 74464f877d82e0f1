"""Find Java and Maven, and report missing ones."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from jmsaio.launcher.errors import ToolError

#: Name of each tool for messages, the variable with its folder, and the oldest version that works: Java for Apache
#: Pulsar 4, Maven for the launcher's version of its plugin.
_TOOLS = {
    "java": ("Java", "JAVA_HOME", (17,)),
    "javac": ("a JDK", "JAVA_HOME", (17,)),
    "mvn": ("Apache Maven", "MAVEN_HOME", (3, 2, 5)),
}
#: Maximum seconds for a tool to report its version.
VERSION_TIMEOUT = 60.0
_VERSION = re.compile(r'(?:version "|javac |Apache Maven )(?:1\.(?=\d))?(\d+(?:\.\d+)*)')


def parse_version(text: str) -> tuple[int, ...] | None:
    """Parse the version in what ``java -version``, ``javac -version`` or ``mvn --version`` prints; "1.8" is 8."""
    found = _VERSION.search(text)
    return tuple(map(int, found[1].split("."))) if found is not None else None


def _needed(tool: str) -> str:
    name, _, oldest = _TOOLS[tool]
    return f"{name} {'.'.join(map(str, oldest))} or newer is needed"


def find(tool: str) -> Path:
    """Find ``java``, ``javac`` or ``mvn``: below ``$JAVA_HOME`` or ``$MAVEN_HOME`` if set, otherwise on the path."""
    home = os.environ.get(_TOOLS[tool][1])
    if home:
        candidate = Path(home) / "bin" / tool
        if os.access(candidate, os.X_OK):
            return candidate
    found = shutil.which(tool)
    if found is None:
        raise ToolError(f"{_needed(tool)}, but the command '{tool}' was not found; install it", tool)
    return Path(found)


def require(tool: str) -> Path:
    """Find a tool as with `find`. Raises ToolError if it is missing, does not run, or is too old."""
    path = find(tool)
    try:
        _, text = run([str(path), "--version" if tool == "mvn" else "-version"], VERSION_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{_needed(tool)}, but '{path}' can't be run: {error}", tool) from error
    version = parse_version(text)
    if version is None:
        reason = f"does not report its version: {text.strip()[-200:]}"
    elif version < _TOOLS[tool][2]:
        reason = f"is version {'.'.join(map(str, version))}"
    else:
        return path
    raise ToolError(f"{_needed(tool)}, but '{path}' {reason}", tool)


def run(arguments: Sequence[str], timeout: float, folder: Path | None = None) -> tuple[int, str]:
    done = subprocess.run(
        arguments,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )
    return done.returncode, done.stdout


def missing(*tools: str) -> list[str]:
    """Return one sentence for each tool that is missing or too old; empty if none is."""
    sentences = []
    for tool in tools:
        try:
            require(tool)
        except ToolError as error:
            sentences.append(error.reason)
    return sentences
