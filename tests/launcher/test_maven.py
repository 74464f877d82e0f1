"""Downloads through Maven, and the filter packed from them: what is cached, what is said when it fails.

Maven is a script here.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from jmsaio.launcher import DownloadError, fetch_jars
from jmsaio.launcher.maven import fetch_broker, pack_filter, recipe, run, write_nar
from jmsaio.launcher.settings import BROKER_VERSION

_SCRIPT = """#!/bin/sh
if [ "$1" = --version ]; then echo 'Apache Maven 3.9.9'; exit 0; fi
echo "$@" >> {home}/calls
{body}
"""


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def] # a function of a text
    """``maven(body)`` puts a Maven in place that does this."""
    folder = tmp_path / "bin"
    folder.mkdir()
    java = folder / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"'\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("MAVEN_HOME", raising=False)
    monkeypatch.setenv("JMSAIO_CACHE", str(tmp_path / "cache"))

    def make(body: str) -> Path:
        script = folder / "mvn"
        script.write_text(_SCRIPT.format(home=tmp_path, body=body))
        script.chmod(0o755)
        return tmp_path / "calls"

    return make


_COPY_JARS = """
for word in "$@"; do case $word in
-Dartifact=*) name=$(echo "${word#*=}" | cut -d: -f2- | tr : -);;
-DoutputDirectory=*) folder=${word#*=};;
esac; done
echo jar > "$folder/$name.jar"
"""
_COPY_BROKER = """
for word in "$@"; do case $word in -DoutputDirectory=*) folder=${word#*=};; esac; done
mkdir -p "$folder"; echo one > "$folder/a.jar"; echo two > "$folder/b.jar"
"""


def test_jars_are_fetched_once(maven, tmp_path: Path) -> None:  # type: ignore[no-untyped-def] # see the fixture
    calls = maven(_COPY_JARS)
    said: list[str] = []
    wanted = ["org.a:b:1.0", "org.c:d-e:2"]
    paths = fetch_jars(wanted, said.append)
    assert paths == [tmp_path / "cache" / "jars" / "b-1.0.jar", tmp_path / "cache" / "jars" / "d-e-2.jar"]
    assert all(path.read_text() == "jar\n" for path in paths)
    assert said == ["fetching org.a:b:1.0 from Maven Central", "fetching org.c:d-e:2 from Maven Central"]
    assert fetch_jars(wanted[::-1], said.append) == paths[::-1]
    assert len(calls.read_text().splitlines()) == 2
    assert fetch_jars([*wanted, "org.f:g:3"], said.append)[2].exists()
    assert len(calls.read_text().splitlines()) == 3, "only what is not there is asked for"
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["jars", "lock"]


@pytest.mark.parametrize("wrong", ["a:b", "a:b:c:d", "a::1", ""])
def test_wrong_coordinates_are_refused(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not group:artifact:version"):
        fetch_jars([wrong])


def test_a_failing_maven_is_quoted_with_advice(maven, tmp_path: Path) -> None:  # type: ignore[no-untyped-def] # as above
    maven("echo '[INFO] x'; echo '[ERROR] '; echo '[ERROR] Could not transfer artifact'; echo '[ERROR] more'; exit 1")
    with pytest.raises(DownloadError, match=r"fetch a:b:1: Could not transfer artifact \(check the network") as caught:
        fetch_jars(["a:b:1"])
    assert "[INFO] x" in caught.value.output
    assert sorted(path.name for path in (tmp_path / "cache").rglob("*")) == ["jars", "lock"]


def test_a_maven_that_says_nothing(maven, tmp_path: Path) -> None:  # type: ignore[no-untyped-def] # see the fixture
    maven("exit 7")
    with pytest.raises(DownloadError, match="exit code 7"):
        fetch_jars(["a:b:1"])
    maven("exit 0")
    with pytest.raises(DownloadError, match=r"b-1\.jar did not arrive"):
        fetch_jars(["a:b:1"])


def test_a_hanging_maven_is_ended(maven) -> None:  # type: ignore[no-untyped-def] # see the fixture
    maven("exec sleep 600")
    with pytest.raises(DownloadError, match=r"fetch it: not done after 0\.2 s"):
        run(["x"], "<project/>", "it", timeout=0.2)


def test_broker_is_fetched_once(maven, tmp_path: Path) -> None:  # type: ignore[no-untyped-def] # as above
    """A failed download leaves nothing that counts as one."""
    maven(f"{_COPY_BROKER} exit 1")
    with pytest.raises(DownloadError):
        fetch_broker()
    calls = maven(_COPY_BROKER)
    said: list[str] = []
    for _ in range(2):
        lib = fetch_broker(said.append)
        assert lib == tmp_path / "cache" / f"broker-{BROKER_VERSION}" / "lib"
        assert {path.name for path in lib.iterdir()} == {"a.jar", "b.jar"}
    assert len(calls.read_text().splitlines()) == 2
    assert len(said) == 2
    assert f"{BROKER_VERSION} is there: 2 jars" in said[-1]


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


def test_pack_filter_uses_the_cache_and_makes_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMSAIO_CACHE", str(tmp_path / "cache"))
    plan = recipe()
    (tmp_path / "cache" / "jars").mkdir(parents=True)
    for number, coordinate in enumerate(plan["jars"]):
        _, artifact, version = coordinate.split(":")
        content = {DEFINITION: "name: jms"} if number == 0 else {"x": "y"}
        jar(tmp_path / "cache" / "jars" / f"{artifact}-{version}.jar", **content)
    said: list[str] = []
    path = pack_filter(tmp_path / "new" / "folder", said.append)
    assert path == tmp_path / "new" / "folder" / "jms.nar"
    assert said == [f"packed {path}"]
    assert path.stat().st_mode & 0o044 == 0o044, "a container's user must be able to read it"


@pytest.mark.java
def test_the_archive_of_the_real_filter_has_each_jar_of_its_recipe(tmp_path: Path) -> None:
    path = pack_filter(tmp_path)
    with zipfile.ZipFile(path) as nar:
        assert b"name: jms" in nar.read(DEFINITION)
        bundled = [name for name in nar.namelist() if name.startswith("META-INF/bundled-dependencies/")]
    assert len(bundled) == len(recipe()["jars"])
