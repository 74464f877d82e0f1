"""The manifest of an archive, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from jmsaio.errors import ConfigurationError
from jmsaio.spark.jobs.manifest import (
    NAME,
    ArchivedPart,
    Manifest,
    read_manifest,
    require_manifest,
    write_manifest,
)
from jmsaio.spark.model import schema
from jmsaio.spark.model.places import Place
from jmsaio.spark.planning.ranges import Loss

TOPIC = "persistent://public/default/orders-partition-0"
PART = ArchivedPart(
    topic=TOPIC, start=Place(5, 0), end=Place(7, 3), rows=10, first=1_700_000_000_123, last=1_700_000_000_456
)
MANIFEST = Manifest(destination="queue://orders", selector="a = 'ä'", runs=1, parts=(PART,))


def test_a_manifest_comes_back_from_its_file(tmp_path: Path) -> None:
    write_manifest(tmp_path, MANIFEST)
    assert read_manifest(tmp_path) == MANIFEST
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_the_file_says_what_a_person_looks_for(tmp_path: Path) -> None:
    write_manifest(tmp_path, MANIFEST)
    written = json.loads((tmp_path / NAME).read_text(encoding="utf-8"))
    assert written["tool"].startswith("jmsaio ")
    assert (written["schema"], written["rows"], written["selector"]) == (schema.VERSION, 10, "a = 'ä'")
    assert written["partitions"] == [
        {
            "topic": TOPIC, "start": "5:0", "end": "7:3", "rows": 10,
            "first": "2023-11-14T22:13:20.123Z", "last": "2023-11-14T22:13:20.456Z", "next": "7:3",
        }
    ]  # fmt: skip


def test_a_write_that_fails_leaves_the_manifest_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_manifest(tmp_path, MANIFEST)

    def fail(number: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no space"):
        write_manifest(tmp_path, Manifest(destination="queue://orders"))
    assert read_manifest(tmp_path) == MANIFEST


def test_a_later_run_extends_its_partition_and_adds_others() -> None:
    other = ArchivedPart(
        topic="persistent://public/default/orders-partition-1", start=Place(1, 0), end=Place(1, 1), rows=1
    )
    later = ArchivedPart(
        topic=TOPIC, start=Place(7, 3), end=Place(9, 1), rows=4, first=1_700_000_000_400, last=1_700_000_001_000
    )
    merged = MANIFEST.after_run([other, later], ["some are gone"])
    assert merged.runs == 2
    assert merged.rows == 15
    assert merged.lost == ("some are gone",)
    assert merged.parts == (
        ArchivedPart(
            topic=TOPIC, start=Place(5, 0), end=Place(9, 1), rows=14, first=1_700_000_000_123, last=1_700_000_001_000
        ),
        other,
    )
    assert merged.ends() == {TOPIC: Place(9, 1), other.topic: Place(1, 1)}


def test_a_run_that_found_no_rows_moves_the_end_only() -> None:
    merged = MANIFEST.after_run([ArchivedPart(topic=TOPIC, start=Place(7, 3), end=Place(8, 0))])
    assert merged.parts[0].end == Place(8, 0)
    assert (merged.parts[0].first, merged.parts[0].last) == (PART.first, PART.last)


def test_accepted_losses_are_noted_and_not_told_again() -> None:
    other = ArchivedPart(
        topic="persistent://public/default/orders-partition-1", start=Place(1, 0), end=Place(1, 1), rows=1
    )
    archived = MANIFEST.after_run([other])
    losses = [Loss(TOPIC, Place(7, 3), Place(2, 0), "trimmed"), Loss(other.topic, Place(1, 1), None, "deleted")]
    noted = archived.after_losses(losses)
    assert noted.ends() == {TOPIC: Place(2, 0)}
    assert (noted.runs, noted.rows, noted.lost) == (archived.runs, archived.rows, tuple(map(str, losses)))
    assert Manifest.from_json(noted.to_json()) == noted
    on = noted.after_run([ArchivedPart(topic=TOPIC, start=Place(2, 0), end=Place(2, 4), rows=4)])
    assert (on.parts[0].start, on.parts[0].end, on.parts[0].next) == (Place(2, 0), Place(7, 3), Place(2, 4))


def test_a_manifest_of_the_version_before_is_read() -> None:
    written = MANIFEST.to_json()
    del written["id"], written["partitions"][0]["next"]
    assert Manifest.from_json({**written, "version": 1}) == MANIFEST


def test_an_archive_in_a_store_has_the_files_of_runs_that_were_added() -> None:
    taken = attrs.evolve(MANIFEST, writer="0" * 12, writers={"a" * 12: 1})
    assert taken.prefix == "run-000002-000000000000-"
    assert [taken.has(f"run-00000{run}-{writer * 12}-x.parquet") for run in (1, 2) for writer in "a0"] == [
        True, False, False, False,
    ]  # fmt: skip
    added = Manifest.from_json(taken.after_run([]).to_json())
    assert added.has(f"{taken.prefix}x.parquet") and not added.has(f"{added.prefix}x.parquet")
    assert (MANIFEST.prefix, MANIFEST.has("run-000009-part-00000-x.parquet")) == ("run-000002-", True)


def test_an_archive_has_an_id_of_its_own_from_its_first_run_on() -> None:
    one, other = MANIFEST.after_run([]), MANIFEST.after_run([])
    assert MANIFEST.id == "" and one.id and one.id != other.id
    assert one.after_run([]).id == one.id


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (
            Manifest(destination="queue://bills", selector="a = 'ä'"),
            "destination 'queue://orders', not 'queue://bills'",
        ),
        (Manifest(destination="queue://orders"), "selector \"a = 'ä'\", not none"),
        (
            Manifest(destination="queue://orders", selector="a = 'ä'", until="2026-01-01"),
            "until none, not '2026-01-01'",
        ),
    ],
)
def test_a_run_of_something_else_is_refused(other: Manifest, words: str) -> None:
    with pytest.raises(ConfigurationError, match="another folder") as refused:
        MANIFEST.check_same(other)
    assert words in str(refused.value)


def test_a_run_of_the_same_goes_on() -> None:
    MANIFEST.check_same(Manifest(destination="queue://orders", selector="a = 'ä'", tool="jmsaio 99"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "can't be read"),
        ("[]", "is no manifest"),
        ('{"version": 3, "tool": "jmsaio 9"}', "of version 3, not 2.*jmsaio 9"),
        ('{"version": 1}', "no manifest of an archive: KeyError"),
        (
            json.dumps({**MANIFEST.to_json(), "partitions": [{"topic": "t", "start": "x", "end": "1:0"}]}),
            "ledger:entry",
        ),
    ],
)
def test_what_is_no_manifest_is_refused_with_its_file(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / NAME).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=words) as refused:
        read_manifest(tmp_path)
    assert NAME in str(refused.value)


def test_a_folder_without_a_manifest_is_no_archive(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) is None
    with pytest.raises(ConfigurationError, match=r"is no archive.*jmsaio spark archive"):
        require_manifest(tmp_path)
