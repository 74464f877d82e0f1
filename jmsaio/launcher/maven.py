"""Download jars with the user's Maven, which has the user's mirrors, proxies and credentials configured.

Downloads are written to a temporary folder and moved into place once complete, so that an interrupted download is never
mistaken for a finished one.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from jmsaio.launcher import tools
from jmsaio.launcher.errors import DownloadError
from jmsaio.launcher.places import BROKER_VERSION, cache_directory, data_text, locked

#: Callback for progress messages, each one line of text.
Progress = Callable[[str], None]

#: Maximum seconds for one run of Maven.
MAVEN_TIMEOUT = 1800.0
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8"
_EVERY = 25  # files between two progress messages

#: Artifacts of the Java client, for tests that exchange messages with it.
JAVA_CLIENT = ("com.datastax.oss:pulsar-jms-all:9.0.0", "com.fasterxml.jackson.core:jackson-annotations:2.17.2")


def silent(_: str) -> None:
    """Ignore progress messages."""


def run(goals: Sequence[str], pom: str, what: str, progress: Progress = silent, timeout: float = MAVEN_TIMEOUT) -> None:
    """Run Maven goals on a pom given as text, in a separate folder.

    Args:
        goals: goals and ``-D`` properties.
        pom: the pom's text.
        what: name of the download, for messages.
        progress: called regularly with the number of downloaded files.
        timeout: seconds.

    Raises:
        ToolError: Java or Maven is missing or too old.
        DownloadError: Maven failed or took too long; has the end of its output.
    """
    tools.require("java")
    maven = tools.require("mvn")
    tail: deque[str] = deque(maxlen=60)
    with tempfile.TemporaryDirectory(prefix="jmsaio-") as folder:
        (Path(folder) / "pom.xml").write_text(pom, encoding="utf-8")
        process = subprocess.Popen(
            [str(maven), "-B", *goals],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        late = threading.Timer(timeout, process.kill)
        late.daemon = True
        late.start()
        try:
            with process:
                assert process.stdout is not None
                _watch(process.stdout, what, progress, tail)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            late.cancel()
    if process.returncode != 0:
        raise _failed(what, tail, process.returncode)


def _watch(lines: Iterable[str], what: str, progress: Progress, tail: deque[str]) -> None:
    """Keep the end of Maven's output and report downloaded files."""
    count = 0
    for line in lines:
        tail.append(line.rstrip())
        if "Downloaded from" in line or "Downloaded:" in line:
            count += 1
            if count % _EVERY == 0:
                progress(f"{what}: {count} files downloaded")


def _failed(what: str, tail: Iterable[str], code: int) -> DownloadError:
    """Create the error for a failed run, with the first error line of Maven's output and a hint."""
    kept = list(tail)
    errors = [line.removeprefix("[ERROR]").strip() for line in kept if line.startswith("[ERROR]")]
    reason = next((line for line in errors if line), f"exit code {code}")
    return DownloadError(
        f"Maven could not fetch {what}: {reason} (check the network, and mirrors and proxies in Maven's settings.xml)",
        "\n".join(kept),
    )


def fetch_broker(progress: Progress = silent, cache: Path | None = None) -> Path:
    """Return the folder with all jars of the broker; download missing ones (about 230 MB).

    Args:
        progress: called with progress messages.
        cache: the cache folder; default `cache_directory`.

    Raises:
        ToolError, DownloadError: see `run`.
    """
    home = (cache if cache is not None else cache_directory()) / f"broker-{BROKER_VERSION}"
    with locked(home.parent / "lock"):
        if not _complete(home):
            what = f"Apache Pulsar {BROKER_VERSION}"
            progress(f"fetching {what} from Maven Central (about 230 MB, once)")
            home.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="fetch-", dir=home.parent) as folder:
                target = Path(folder) / "lib"
                goals = [f"{_PLUGIN}:copy-dependencies", f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
                run(goals, data_text("broker-pom.xml"), what, progress)
                shutil.rmtree(home / "lib", ignore_errors=True)
                target.rename(home / "lib")
            jars = {jar.name: jar.stat().st_size for jar in sorted((home / "lib").glob("*.jar"))}
            (home / "complete.json").write_text(json.dumps(jars, indent=1), encoding="utf-8")
            progress(f"{what} is there: {len(jars)} jars")
    return home / "lib"


def _complete(home: Path) -> bool:
    """Return whether every downloaded jar still exists with its full size."""
    try:
        jars: dict[str, int] = json.loads((home / "complete.json").read_text(encoding="utf-8"))
        return bool(jars) and all((home / "lib" / name).stat().st_size == size for name, size in jars.items())
    except (OSError, ValueError):
        return False


def fetch_jars(coordinates: Sequence[str], progress: Progress = silent, cache: Path | None = None) -> list[Path]:
    """Return the jars with these coordinates, without their dependencies; download missing ones.

    Args:
        coordinates: ``group:artifact:version`` of each jar.
        progress: called with progress messages.
        cache: the cache folder; default `cache_directory`.

    Returns:
        One path per coordinate, in the same order.

    Raises:
        ValueError: a coordinate does not have three parts.
        ToolError, DownloadError: see `run`.
    """
    home = cache if cache is not None else cache_directory()
    split = [tuple(coordinate.split(":")) for coordinate in coordinates]
    for coordinate, parts in zip(coordinates, split, strict=True):
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"'{coordinate}' is not group:artifact:version")
    places = [home / "jars" / f"{artifact}-{version}.jar" for _, artifact, version in split]
    with locked(home / "lock"):
        wanted = [parts for parts, place in zip(split, places, strict=True) if not place.exists()]
        if wanted:
            what = ", ".join(f"{artifact} {version}" for _, artifact, version in wanted)
            progress(f"fetching {what} from Maven Central")
            (home / "jars").mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="fetch-", dir=home) as folder:
                run([f"{_PLUGIN}:copy"], _copy_pom(wanted, Path(folder)), what, progress)
                for jar in Path(folder).glob("*.jar"):
                    jar.replace(home / "jars" / jar.name)
    absent = [place.name for place in places if not place.exists()]
    if absent:
        raise DownloadError(f"Maven succeeded, but {', '.join(absent)} did not arrive")
    return places


def _copy_pom(coordinates: Sequence[tuple[str, ...]], folder: Path) -> str:
    """Create a pom whose ``dependency:copy`` puts these artifacts into the folder."""
    items = "".join(
        f"<artifactItem><groupId>{escape(group)}</groupId><artifactId>{escape(artifact)}</artifactId>"
        f"<version>{escape(version)}</version></artifactItem>"
        for group, artifact, version in coordinates
    )
    return data_text("jars-pom.xml").replace("@ITEMS@", items).replace("@FOLDER@", escape(str(folder)))
