"""Folders of archives: which URLs are one, and what a store promises for its objects."""

from __future__ import annotations

import errno
import pickle
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from jmsaio.errors import ConfigurationError, IllegalStateError
from jmsaio.spark.model import folder as folders
from jmsaio.spark.model.folder import StorePath, Version, folder_at, remove, sync
from jmsaio.spark.model.places import Place
from jmsaio.spark.planning.losses import Losses, read_losses
from jmsaio.spark.planning.ranges import Loss
from tests.spark.conftest import STORES, new_folder
from tests.spark.store import KEY, SECRET


@pytest.fixture(params=["gcs", *STORES])
def store(request: pytest.FixtureRequest) -> StorePath:
    """A folder in each kind of store, GCS too."""
    return new_folder(request)


@pytest.mark.parametrize("text", ["/a/b", "a", "a:b/c"])
def test_a_path_is_a_folder_of_this_machine(text: str) -> None:
    assert folder_at(text) == Path(text)


@pytest.mark.parametrize(
    "url",
    [
        "s3a://bucket/folder", "s3://bucket/a/b", "gs://bucket/folder",
        "abfs://container@account.dfs.core.windows.net/folder",
        "abfss://container@account.dfs.core.windows.net/folder",
        "hdfs://name/folder", "hdfs://name:8020/a/b",
    ],
)  # fmt: skip
def test_a_url_of_a_store_with_conditional_writes_is_a_folder(url: str) -> None:
    folder = folder_at(f"{url}/")
    assert isinstance(folder, StorePath)
    assert (str(folder), str(folder / "x"), (folder / "x").parent) == (url, f"{url}/x", folder)
    assert pickle.loads(pickle.dumps(folder)) == folder.absolute() == folder


def test_urls_of_the_same_folder_resolve_to_one() -> None:
    for short, long in (
        ("s3://b/f", "s3a://b/f"), ("abfs://c@a/f", "abfss://c@a/f"), ("hdfs://n/f", "hdfs://n:8020/f"),
    ):  # fmt: skip
        assert folder_at(long) != folder_at(short) == folder_at(long).resolve() == folder_at(short).resolve()


@pytest.mark.parametrize(
    "url",
    [
        "hdfs:///folder", "hdfs:/folder", "file:///tmp/folder", "https://account.blob.core.windows.net/c/f",
        "s3a:/bucket/folder", "s3a://bucket", "s3a://bucket/", "wasbs://container/f", "abfs://container/folder",
    ],
)  # fmt: skip
def test_another_url_is_refused_with_what_to_write(url: str) -> None:
    with pytest.raises(ConfigurationError, match="give s3a://BUCKET/FOLDER") as refused:
        folder_at(url)
    assert repr(url) in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["s3a://key:se/cret@bucket/folder", "s3://secret@bucket/folder", "s3a://bucket/folder?key=secret",
     "https://account.blob.core.windows.net/c/f?sig=secret", "abfs://secret:c@account/folder#secret",
     "hdfs://user:secret@name/folder"],
)  # fmt: skip
def test_credentials_in_a_url_are_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match="credentials in the environment") as refused:
        folder_at(url)
    assert "cret" not in str(refused.value)


def test_objects_are_written_found_moved_and_deleted(store: StorePath) -> None:
    assert (store.files(), list(store.glob("*"))) == ([], [])
    for name in ("a.txt", "b/c=queue%3A%2F%2Fä b/c.txt", "b/d.txt"):
        (store / name).write_bytes(name.encode())
    found = store.files()
    assert [path.read_bytes().decode() for path in found] == [str(path)[len(str(store)) + 1 :] for path in found]
    assert list(store.glob("*.txt")) == [store / "a.txt"]
    assert list(store.glob("*/*/c.txt")) == [found[1]]
    (store / "moved").mkdir(parents=True, exist_ok=True)
    found[1].rename(store / "moved" / "c.txt")
    assert found[1] not in store.files() and (store / "moved" / "c.txt") in store.files()
    (store / "a.txt").unlink()
    (store / "a.txt").unlink()
    remove(store / "b")
    assert store.files() == [store / "moved" / "c.txt"]
    for read in ((store / "a.txt").read, (store / "a.txt").read_bytes):
        with pytest.raises(FileNotFoundError, match=f"^{store}/a.txt: "):
            read()


def test_one_of_two_that_replace_the_same_version_does(store: StorePath) -> None:
    path = store / "x"
    first = path.replace_version(b"1", None)
    with pytest.raises(IllegalStateError, match=f"another run archives into {store}"):
        path.replace_version(b"2", None)
    second = path.replace_version(b"2", first)
    with pytest.raises(IllegalStateError):
        path.replace_version(b"3", first)
    assert path.read() == (b"2", second)
    assert path.replace_version(b"2", first) == second  # an attempt before, whose answer was lost


def test_of_many_that_replace_the_same_version_in_hdfs_one_does(hdfs: str) -> None:
    folder = folder_at(f"{hdfs}/many")
    assert isinstance(folder, StorePath)
    path, done = folder / "x", list[bytes]()
    versions: list[Version | None] = [None]

    def replace(writer: int) -> None:
        for number in range(8):
            with suppress(IllegalStateError):
                path.replace_version(data := b"%d %d" % (writer, number), versions[-1])
                done.append(data)

    for _ in range(5):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(replace, range(4)))
        found, version = path.read()
        versions.append(version)
        assert (len(done), found) == (len(versions) - 1, done[-1])
    for late in versions[:-1]:  # also with the numbers of versions that were deleted
        with pytest.raises(IllegalStateError):
            path.replace_version(b"late", late)
    assert path.read() == (found, version)


def test_versions_in_hdfs_that_nobody_needs_are_deleted(hdfs: str) -> None:
    folder = folder_at(f"{hdfs}/versions")
    assert isinstance(folder, StorePath)
    path, version = folder / "x.json", None
    (folder / f"x.json.new-{'0' * 32}").write_bytes(b"of a writer that was killed")
    others = ["x.json.20261127", "x.json.bak", "x.jsonl"]
    for name in others:
        (folder / name).write_bytes(b"")
    for number in range(12):
        version = path.replace_version(b"%d" % number, version)
    assert {each.name for each in folder.files()} == {"x.json.v11", "x.json.v12", *others}
    assert path.read() == (b"11", {"number": 12})


def test_a_file_that_was_copied_to_hdfs_is_the_first_version(hdfs: str) -> None:
    path = folder_at(f"{hdfs}/copied/x")
    assert isinstance(path, StorePath)
    path.write_bytes(b"0")
    found, copied = path.read()
    first = path.replace_version(b"1", copied)
    with pytest.raises(IllegalStateError):
        path.replace_version(b"2", copied)
    assert (found, path.read()) == (b"0", (b"1", first))
    assert path.replace_version(b"2", first) == {"number": 2}
    assert [each.name for each in path.parent.files()] == ["x.v1", "x.v2"]


def test_a_version_of_a_folder_in_hdfs_that_was_deleted_has_no_next_one(hdfs: str) -> None:
    path = folder_at(f"{hdfs}/deleted/x")
    assert isinstance(path, StorePath)
    old = path.replace_version(b"2", path.replace_version(b"1", None))
    remove(path.parent)
    new = path.replace_version(b"new", None)
    with pytest.raises(IllegalStateError):
        path.replace_version(b"3", old)
    assert path.read() == (b"new", new)


def test_errors_of_hdfs_have_one_line(hdfs: str) -> None:
    path = folder_at(f"{hdfs}/errors/x")
    path.write_bytes(b"")
    with pytest.raises(OSError, match=r"^hdfs://.*/errors/x/y: .*is not a directory") as refused:
        (path / "y").mkdir(parents=True)
    assert "at org.apache" not in str(refused.value) and refused.value.__cause__ is None


def test_losses_are_noted_in_a_store(store: StorePath) -> None:
    losses = Losses(False, str(store))
    loss = Loss("t", Place(1, 0), None, "gone")
    losses.report_all([loss, loss])
    assert (read_losses(store), losses.total()) == ((str(loss),), 1)


@pytest.mark.usefixtures("server")
def test_errors_have_the_status_of_an_answer_and_nothing_else_of_it() -> None:
    missing = StorePath("s3://no-such-bucket/folder")
    with pytest.raises(OSError, match=r"^s3://no-such-bucket/folder: .*404 Not Found$"):
        missing.write_bytes(b"x")
    answer = f"Error performing GET https://h/x?sig={SECRET} - status code: 403 Forbidden: <E>{KEY}</E>\n\nDebug: {KEY}"
    with pytest.raises(OSError, match=r"GET https://h/x - status code: 403 Forbidden$") as refused:
        with missing._call("get"):
            raise RuntimeError(answer)
    shown = "".join(traceback.format_exception(refused.value))
    assert KEY not in shown and SECRET not in shown


@pytest.mark.parametrize(
    ("url", "package"), [("s3a://bucket/folder", "obstore"), ("hdfs://name/folder", "hdfs_native")]
)
def test_a_url_without_the_packages_for_it_says_what_to_install(
    url: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "find_spec", lambda name: None if name == package else name)
    with pytest.raises(ConfigurationError, match=r"pip install 'jmsaio\[store\]'"):
        folder_at(url)


def test_folders_are_synced_where_the_file_system_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"")

    def refuse(number: int) -> None:
        raise OSError(errno.EINVAL, "no sync")

    sync([tmp_path, file])
    monkeypatch.setattr("os.fsync", refuse)
    sync([tmp_path])
    with pytest.raises(OSError, match="no sync"):
        sync([file])
