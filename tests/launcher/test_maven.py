"""Downloads through Maven: what it is asked, what is cached, what is said when it fails. Maven is a script here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jmsaio.launcher import DownloadError, fetch_jars
from jmsaio.launcher.maven import fetch_broker, run
from jmsaio.launcher.places import BROKER_VERSION

_SCRIPT = """#!/bin/sh
if [ "$1" = --version ]; then echo 'Apache Maven 3.9.9'; exit 0; fi
echo "$@" >> {home}/calls
cp pom.xml {home}/pom.xml
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

    def make(body: str) -> Path:
        script = folder / "mvn"
        script.write_text(_SCRIPT.format(home=tmp_path, body=body))
        script.chmod(0o755)
        return tmp_path / "calls"

    return make


_COPY_JARS = """
folder=$(sed -n 's:.*<outputDirectory>\\(.*\\)</outputDirectory>.*:\\1:p' pom.xml)
sed 's:<artifactItem>:\\n&:g' pom.xml | sed -n \
 's:.*<artifactId>\\(.*\\)</artifactId><version>\\(.*\\)</version></artifactItem>.*:\\1-\\2.jar:p' |
while read -r name; do echo jar > "$folder/$name"; done
"""
_COPY_BROKER = """
for word in "$@"; do case $word in -DoutputDirectory=*) folder=${word#*=};; esac; done
mkdir -p "$folder"; echo one > "$folder/a.jar"; echo two > "$folder/b.jar"
"""


def test_jars_are_fetched_once(maven, tmp_path: Path) -> None:  # type: ignore[no-untyped-def] # see the fixture
    calls = maven(_COPY_JARS)
    said: list[str] = []
    wanted = ["org.a:b:1.0", "org.c:d-e:2"]
    paths = fetch_jars(wanted, said.append, tmp_path / "cache")
    assert paths == [tmp_path / "cache" / "jars" / "b-1.0.jar", tmp_path / "cache" / "jars" / "d-e-2.jar"]
    assert all(path.read_text() == "jar\n" for path in paths)
    assert said == ["fetching b 1.0, d-e 2 from Maven Central"]
    assert fetch_jars(wanted[::-1], said.append, tmp_path / "cache") == paths[::-1]
    assert len(calls.read_text().splitlines()) == 1
    assert fetch_jars([*wanted, "org.f:g:3"], said.append, tmp_path / "cache")[2].exists()
    assert "d-e" not in (tmp_path / "pom.xml").read_text(), "only what is not there is asked for"
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["jars", "lock"]


@pytest.mark.parametrize("wrong", ["a:b", "a:b:c:d", "a::1", ""])
def test_wrong_coordinates_are_refused(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not group:artifact:version"):
        fetch_jars([wrong], cache=tmp_path)


def test_a_failing_maven_is_quoted_with_advice(maven, tmp_path: Path) -> None:  # type: ignore[no-untyped-def] # as above
    maven("echo '[INFO] x'; echo '[ERROR] '; echo '[ERROR] Could not transfer artifact'; echo '[ERROR] more'; exit 1")
    with pytest.raises(DownloadError, match=r"fetch b 1: Could not transfer artifact \(check the network") as caught:
        fetch_jars(["a:b:1"], cache=tmp_path / "cache")
    assert "[INFO] x" in caught.value.output
    assert sorted(path.name for path in (tmp_path / "cache").rglob("*")) == ["jars", "lock"]


def test_a_maven_that_says_nothing(maven, tmp_path: Path) -> None:  # type: ignore[no-untyped-def] # see the fixture
    maven("exit 7")
    with pytest.raises(DownloadError, match="exit code 7"):
        fetch_jars(["a:b:1"], cache=tmp_path / "cache")
    maven("exit 0")
    with pytest.raises(DownloadError, match=r"b-1\.jar did not arrive"):
        fetch_jars(["a:b:1"], cache=tmp_path / "cache")


def test_a_hanging_maven_is_ended(maven) -> None:  # type: ignore[no-untyped-def] # see the fixture
    maven("exec sleep 600")
    with pytest.raises(DownloadError, match="exit code -9"):
        run(["x"], "<project/>", "it", timeout=0.2)


def test_progress_counts_files(maven) -> None:  # type: ignore[no-untyped-def] # see the fixture
    maven('i=0; while [ $i -lt 60 ]; do echo "[INFO] Downloaded from x: y"; i=$((i+1)); done')
    said: list[str] = []
    run(["x"], "<project/>", "the broker", said.append)
    assert said == ["the broker: 25 files downloaded", "the broker: 50 files downloaded"]


def test_broker_is_fetched_once_and_again_when_a_jar_is_gone(maven, tmp_path: Path) -> None:  # type: ignore[no-untyped-def] # as above
    calls = maven(_COPY_BROKER)
    said: list[str] = []
    for damage in (None, None, "gone", "short", "list"):
        lib = tmp_path / "cache" / f"broker-{BROKER_VERSION}" / "lib"
        if damage == "gone":
            (lib / "a.jar").unlink()
        elif damage == "short":
            (lib / "b.jar").write_text("")
        elif damage == "list":
            (lib.parent / "complete.json").write_text("{")
        assert fetch_broker(said.append, tmp_path / "cache") == lib
        assert {path.name for path in lib.iterdir()} == {"a.jar", "b.jar"}
        assert json.loads((lib.parent / "complete.json").read_text()) == {"a.jar": 4, "b.jar": 4}
    assert len(calls.read_text().splitlines()) == 4
    assert len(said) == 8
    assert f"{BROKER_VERSION} is there: 2 jars" in said[-1]
