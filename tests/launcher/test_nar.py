"""The filter's .nar file: its layout, and that it appears whole or not at all."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from jmsaio.launcher import cache_directory
from jmsaio.launcher.errors import DownloadError
from jmsaio.launcher.nar import pack_filter, recipe, write_nar

DEFINITION = "META-INF/services/entry_filter.yml"


def jar(path: Path, **entries: str) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name, text in entries.items():
            file.writestr(name, text)
    return path


@pytest.fixture
def jars(tmp_path: Path) -> list[Path]:
    first = jar(tmp_path / "filters-1.jar", **{DEFINITION: "name: jms\n", "A.class": "x"})
    return [first, jar(tmp_path / "other-2.jar", **{"B.class": "y"})]


def test_an_archive_has_the_manifest_the_definition_and_all_jars(tmp_path: Path, jars: list[Path]) -> None:
    target = tmp_path / "jms.nar"
    write_nar(target, jars, DEFINITION, {"Manifest-Version": "1.0", "Nar-Id": "x"})
    with zipfile.ZipFile(target) as nar:
        assert nar.testzip() is None
        assert nar.namelist() == [
            "META-INF/MANIFEST.MF",
            DEFINITION,
            "META-INF/bundled-dependencies/filters-1.jar",
            "META-INF/bundled-dependencies/other-2.jar",
        ]
        assert nar.read("META-INF/MANIFEST.MF") == b"Manifest-Version: 1.0\r\nNar-Id: x\r\n"
        assert nar.read(DEFINITION) == b"name: jms\n"
        assert nar.read("META-INF/bundled-dependencies/other-2.jar") == jars[1].read_bytes()


def test_same_jars_same_bytes(tmp_path: Path, jars: list[Path]) -> None:
    write_nar(tmp_path / "a.nar", jars, DEFINITION, {"Nar-Id": "x"})
    write_nar(tmp_path / "b.nar", jars, DEFINITION, {"Nar-Id": "x"})
    assert (tmp_path / "a.nar").read_bytes() == (tmp_path / "b.nar").read_bytes()


def test_a_jar_without_the_definition_leaves_nothing(tmp_path: Path, jars: list[Path]) -> None:
    with pytest.raises(DownloadError, match="is not the filter's jar"):
        write_nar(tmp_path / "jms.nar", jars[::-1], DEFINITION, {})
    (tmp_path / "broken.jar").write_bytes(b"<html>")
    with pytest.raises(DownloadError, match="delete it and try again"):
        write_nar(tmp_path / "jms.nar", [tmp_path / "broken.jar"], DEFINITION, {})
    assert not list(tmp_path.glob("*.nar*"))


def test_pack_filter_uses_the_cache_and_makes_the_folder(tmp_path: Path) -> None:
    plan = recipe()
    (tmp_path / "cache" / "jars").mkdir(parents=True)
    for number, coordinate in enumerate(plan["jars"]):
        _, artifact, version = coordinate.split(":")
        content = {DEFINITION: "name: jms"} if number == 0 else {"x": "y"}
        jar(tmp_path / "cache" / "jars" / f"{artifact}-{version}.jar", **content)
    said: list[str] = []
    path = pack_filter(tmp_path / "new" / "folder", said.append, cache=tmp_path / "cache")
    assert path == tmp_path / "new" / "folder" / "jms.nar"
    assert said == [f"packed {path}"]
    assert path.stat().st_mode & 0o044 == 0o044, "a container's user must be able to read it"


@pytest.mark.java
def test_the_archive_of_the_real_filter_has_each_jar_of_its_recipe(tmp_path: Path) -> None:
    path = pack_filter(tmp_path, cache=cache_directory())
    with zipfile.ZipFile(path) as nar:
        assert b"name: jms" in nar.read(DEFINITION)
        bundled = [name for name in nar.namelist() if name.startswith("META-INF/bundled-dependencies/")]
    assert len(bundled) == len(recipe()["jars"])
