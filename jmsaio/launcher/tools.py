"""Find Java and Maven, and report missing ones."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from jmsaio.launcher.errors import ToolError

#: Oldest Java for Apache Pulsar 4.
MINIMUM_JAVA = 17
#: Oldest Maven that runs the launcher's version of the plugin.
MINIMUM_MAVEN = (3, 2, 5)
#: Maximum seconds for a tool to report its version.
VERSION_TIMEOUT = 60.0

_HOMES = {"java": "JAVA_HOME", "javac": "JAVA_HOME", "mvn": "MAVEN_HOME"}
_WANTED = {
    "java": f"Java {MINIMUM_JAVA} or newer",
    "javac": f"a JDK {MINIMUM_JAVA} or newer",
    "mvn": "Apache Maven " + ".".join(map(str, MINIMUM_MAVEN)) + " or newer",
}


def java_version(text: str) -> int | None:
    """Parse the major version in the output of ``java -version`` or ``javac -version`` ("1.8" is 8), or return None."""
    found = re.search(r'(?:version "|javac )(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    first, second = int(found[1]), found[2]
    return int(second) if first == 1 and second is not None else first


def maven_version(text: str) -> tuple[int, ...] | None:
    """Parse the version from the output of ``mvn --version``, or return None."""
    found = re.search(r"Apache Maven (\d+(?:\.\d+)*)", text)
    return tuple(int(part) for part in found[1].split(".")) if found is not None else None


def find(tool: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Find ``java``, ``javac`` or ``mvn``: below ``$JAVA_HOME`` or ``$MAVEN_HOME`` if set, otherwise on the path.

    Raises:
        ToolError: the tool is missing.
    """
    home = environ.get(_HOMES[tool])
    if home:
        candidate = Path(home) / "bin" / tool
        if os.access(candidate, os.X_OK):
            return candidate
    found = shutil.which(tool, path=environ.get("PATH"))
    if found is None:
        raise ToolError(f"{_WANTED[tool]} is needed, but the command '{tool}' was not found; install it", tool)
    return Path(found)


def require(tool: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Find a tool as with `find`, and check that its version is new enough.

    Raises:
        ToolError: it is missing, does not run, or is too old.
    """
    path = find(tool, environ)
    try:
        _, text = run([str(path), "--version" if tool == "mvn" else "-version"], VERSION_TIMEOUT, environ)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{_WANTED[tool]} is needed, but '{path}' can't be run: {error}", tool) from error
    java = java_version(text)
    version = maven_version(text) if tool == "mvn" else None if java is None else (java,)
    if version is None:
        reason = f"does not report its version: {text.strip()[-200:]}"
    elif version < (MINIMUM_MAVEN if tool == "mvn" else (MINIMUM_JAVA,)):
        reason = f"is version {'.'.join(map(str, version))}"
    else:
        return path
    raise ToolError(f"{_WANTED[tool]} is needed, but '{path}' {reason}", tool)


def run(arguments: Sequence[str], timeout: float, environ: Mapping[str, str] = os.environ) -> tuple[int, str]:
    """Run a program to its end, for up to ``timeout`` seconds; return its exit code and its output.

    Raises:
        OSError, subprocess.TimeoutExpired: it can't be run, or did not end in time.
    """
    done = subprocess.run(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
        env=dict(environ),
    )
    return done.returncode, done.stdout


def missing(*tools: str, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return one sentence for each tool that is missing or too old; empty if none is."""
    sentences = []
    for tool in tools:
        try:
            require(tool, environ)
        except ToolError as error:
            sentences.append(error.reason)
    return sentences
