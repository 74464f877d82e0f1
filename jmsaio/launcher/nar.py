"""Pack Starlight's server-side selector filter as the .nar file that a Pulsar broker loads."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path
from typing import TypedDict

from jmsaio.launcher.errors import DownloadError
from jmsaio.launcher.maven import Progress, fetch_jars, silent
from jmsaio.launcher.places import data_text

# A fixed time for every entry: the same jars produce the same file, byte for byte.
_TIME = (2020, 1, 1, 0, 0, 0)


class Recipe(TypedDict):
    """The keys of ``data/filter.toml``.

    Attributes:
        name: name of the .nar file.
        jars: Maven coordinates; the first jar contains the definition.
        definition: path of the definition in that jar.
        manifest: entries of the manifest.
    """

    name: str
    jars: list[str]
    definition: str
    manifest: dict[str, str]


def recipe() -> Recipe:
    """Read the packing recipe (``data/filter.toml``)."""
    found: Recipe = tomllib.loads(data_text("filter.toml"))  # type: ignore[assignment]  # a file of this package
    return found


def pack_filter(directory: Path | str, progress: Progress = silent, cache: Path | None = None) -> Path:
    """Pack the filter into a folder, which is created if necessary, for a broker's ``entryFiltersDirectory``.

    Args:
        directory: the folder.
        progress: called with progress messages.
        cache: the cache folder of downloads; default `places.cache_directory`.

    Returns:
        The path of the .nar file.

    Raises:
        ToolError, DownloadError: the jars are not in the cache and can't be fetched.
    """
    plan = recipe()
    jars = fetch_jars(plan["jars"], progress, cache)
    target = Path(directory).expanduser().absolute() / plan["name"]
    target.parent.mkdir(parents=True, exist_ok=True)
    write_nar(target, jars, plan["definition"], plan["manifest"])
    progress(f"packed {target}")
    return target


def write_nar(target: Path, jars: list[Path], definition: str, manifest: dict[str, str]) -> None:
    """Write a .nar atomically: manifest, the definition from the first jar, all jars as bundled dependencies.

    Raises:
        DownloadError: the first jar is broken or has no such definition.
    """
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
