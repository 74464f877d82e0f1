"""Download jars with the user's Maven, which has the user's mirrors, proxies and credentials configured.

Downloads are written to a temporary folder and moved into place once complete, so that an interrupted download is never
mistaken for a finished one. Starlight's selector filter is packed from such jars.
"""

from __future__ import annotations

import subprocess
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jmsaio.launcher import tools
from jmsaio.launcher.errors import DownloadError
from jmsaio.launcher.settings import BROKER_VERSION, cache_directory, data_text
from jmsaio.launcher.state import locked

#: Callback for progress messages, each one line of text.
Progress = Callable[[str], None]

#: Maximum seconds for one run of Maven.
MAVEN_TIMEOUT = 1800.0
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8"
_TAIL = 60  # lines of a failed run's output
# A fixed time for every entry of the filter: the same jars produce the same file, byte for byte.
_TIME = (2020, 1, 1, 0, 0, 0)

#: Artifacts of the Java client, for tests that exchange messages with it.
JAVA_CLIENT = ("com.datastax.oss:pulsar-jms-all:9.0.0", "com.fasterxml.jackson.core:jackson-annotations:2.17.2")


def silent(_: str) -> None:
    """Ignore progress messages."""


def run(goals: Sequence[str], pom: str, what: str, timeout: float = MAVEN_TIMEOUT) -> None:
    """Run Maven goals in a separate folder with the text of a pom, "" if they need none. Raises as ``fetch_jars``."""
    tools.require("java")
    arguments = [str(tools.require("mvn")), "-B", *goals]
    with tempfile.TemporaryDirectory(prefix="jmsaio-") as folder:
        if pom:
            (Path(folder) / "pom.xml").write_text(pom, encoding="utf-8")
        code: int | None
        try:
            code, output = tools.run(arguments, timeout, Path(folder))
        except subprocess.TimeoutExpired as error:
            code, output = None, (error.output or b"").decode(errors="replace")
    if code != 0:
        lines = output.splitlines()[-_TAIL:]
        errors = [line.removeprefix("[ERROR]").strip() for line in lines if line.startswith("[ERROR]")]
        ended = f"not done after {timeout:g} s" if code is None else f"exit code {code}"
        reason = next(filter(None, errors), ended)
        advice = "check the network, and mirrors and proxies in Maven's settings.xml"
        raise DownloadError(f"Maven could not fetch {what}: {reason} ({advice})", "\n".join(lines))


def fetch_broker(progress: Progress = silent) -> Path:
    """Return the folder with all jars of the broker; download them (about 230 MB) if it does not exist."""
    jars = cache_directory() / f"broker-{BROKER_VERSION}" / "lib"
    with locked(cache_directory() / "lock"):
        if not jars.exists():
            what = f"Apache Pulsar {BROKER_VERSION}"
            progress(f"fetching {what} from Maven Central (about 230 MB, once)")
            jars.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="fetch-", dir=cache_directory()) as folder:
                target = Path(folder) / "lib"
                goals = [f"{_PLUGIN}:copy-dependencies", f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
                run(goals, data_text("broker-pom.xml"), what)
                target.rename(jars)
            progress(f"{what} is there: {len(list(jars.iterdir()))} jars")
    return jars


def fetch_jars(coordinates: Sequence[str], progress: Progress = silent) -> list[Path]:
    """Return the jars with these coordinates, without their dependencies; download missing ones.

    Args:
        coordinates: ``group:artifact:version`` of each jar.
        progress: called with progress messages.

    Returns:
        One path per coordinate, in the same order.

    Raises:
        ValueError: a coordinate does not have three parts.
        ToolError: Java or Maven is missing or too old.
        DownloadError: Maven failed to fetch a jar, or took too long; has the end of its output.
    """
    folder = cache_directory() / "jars"
    paths = []
    for coordinate in coordinates:
        parts = coordinate.split(":")
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"'{coordinate}' is not group:artifact:version")
        paths.append(folder / f"{parts[1]}-{parts[2]}.jar")
    with locked(folder.parent / "lock"):
        for coordinate, path in zip(coordinates, paths, strict=True):
            if not path.exists():
                _fetch_jar(coordinate, path, progress)
    return paths


def _fetch_jar(coordinate: str, path: Path, progress: Progress) -> None:
    progress(f"fetching {coordinate} from Maven Central")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=path.parent.parent) as folder:
        run([f"{_PLUGIN}:copy", f"-Dartifact={coordinate}", f"-DoutputDirectory={folder}"], "", coordinate)
        try:
            (Path(folder) / path.name).replace(path)
        except FileNotFoundError as error:
            raise DownloadError(f"Maven succeeded, but {path.name} did not arrive") from error


def recipe() -> dict[str, Any]:
    """Read how the filter is packed: ``name``, ``jars``, ``definition`` and ``manifest`` of ``data/filter.toml``."""
    return tomllib.loads(data_text("filter.toml"))


def pack_filter(directory: Path | str, progress: Progress = silent) -> Path:
    """Pack the filter into a folder, which is created if necessary, for a broker's ``entryFiltersDirectory``.

    Args:
        directory: the folder.
        progress: called with progress messages.

    Returns:
        The path of the .nar file.

    Raises:
        ToolError, DownloadError: the jars are not in the cache and can't be fetched.
    """
    plan = recipe()
    jars = fetch_jars(plan["jars"], progress)
    target = Path(directory).expanduser().absolute() / str(plan["name"])
    target.parent.mkdir(parents=True, exist_ok=True)
    write_nar(target, jars, plan["definition"], plan["manifest"])
    progress(f"packed {target}")
    return target


def write_nar(target: Path, jars: list[Path], definition: str, manifest: dict[str, str]) -> None:
    """Write a .nar atomically: manifest, the definition from the first jar, all jars as bundled dependencies."""
    try:
        with zipfile.ZipFile(jars[0]) as first:
            text = first.read(definition)
    except (zipfile.BadZipFile, KeyError) as error:
        raise DownloadError(f"{jars[0]} is not the filter's jar ({error}); delete it and try again") from error
    lines = "".join(f"{key}: {value}\r\n" for key, value in manifest.items())
    entries = [("META-INF/MANIFEST.MF", lines.encode()), (definition, text)]
    entries += [(f"META-INF/bundled-dependencies/{jar.name}", jar.read_bytes()) for jar in jars]
    part = target.with_name(target.name + ".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as nar:
        for name, data in entries:
            nar.writestr(zipfile.ZipInfo(name, _TIME), data, zipfile.ZIP_DEFLATED)
    part.replace(target)
