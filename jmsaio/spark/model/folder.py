"""Folders of archives: paths, and URLs in object stores that replace an object only on a condition, or in HDFS."""

from __future__ import annotations

import errno
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final, TypeAlias, cast

from jmsaio.errors import ConfigurationError, IllegalStateError
from jmsaio.model.arguments import shown

#: Beginning of a URL, also if a path has merged its two slashes.
_URL: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]+:/")
#: URLs of stores with conditional writes and of HDFS, without credentials.
_STORED: Final = re.compile("((s3a?|gs)://[^/@:?#]+|abfss?://[^/@:?#]+@[^/@:?#]+|hdfs://[^/@?#]+)/[^?#]*[^?#/]/*")
_SECRET: Final = re.compile("//.*@|[?#].*", re.DOTALL)
#: Version of an object, as its store names it.
Version: TypeAlias = Mapping[str, Any]


class StorePath(PurePosixPath):
    """The URL of an object in a store or of all below it, with those methods of ``Path`` that jobs use.

    Each process takes credentials from its own environment. Errors of the store are OSErrors, without its answers.
    """

    def __str__(self) -> str:
        """Return the URL."""
        return super().__str__().replace(":/", "://", 1)

    def absolute(self) -> StorePath:
        """Return the URL itself."""
        return self

    def resolve(self) -> StorePath:
        """Return the same URL for all schemes that name the same object, and without the usual port."""
        return type(self)(re.sub("^(s3|abfs)[as](?=:)|^(hdfs://[^/:]+):8020(?=/)", r"\1\2", str(self)))

    @property
    def _key(self) -> str:
        """The name of the object in its store."""
        return "/".join(self.parts[2:])

    def mkdir(self, **_: object) -> None:
        """Do nothing: a store has no folders."""

    def read(self) -> tuple[bytes, Version]:
        """Return the content and its version."""
        with self._call("get") as get:
            found = get()
            return bytes(found.bytes()), _version(found.meta)

    def read_bytes(self) -> bytes:
        """Return the content."""
        return self.read()[0]

    def write_bytes(self, data: bytes) -> None:
        """Write the object. Readers see all of it or nothing."""
        with self._call("put") as put:
            put(data)

    def replace_version(self, data: bytes, version: Version | None) -> Version:
        """Replace this version of the object, or create the object if that is None; return the new version.

        Raises:
            IllegalStateError: the object has another version.
        """
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._call("put") as put, suppress(AlreadyExistsError, PreconditionError):
            return _version(put(data, mode=version or "create"))
        return self._require(data)  # an earlier attempt was successful, but its answer was lost

    def _require(self, data: bytes) -> Version:
        """Return the current version, if it has this content."""
        found, now = self.read()
        if found == data:
            return now
        raise IllegalStateError(f"another run archives into {self.parent}: wait for its end, or name another folder")

    def rename(self, target: PurePath) -> None:
        """Copy the object, and delete this one; raise IllegalStateError if another run deleted it."""
        try:
            with self._call("rename") as rename:
                rename(cast("StorePath", target)._key)
        except FileNotFoundError:
            raise IllegalStateError(f"another run archives into the same folder: it deleted {self}") from None

    def unlink(self) -> None:
        """Delete the object, if it exists."""
        with suppress(FileNotFoundError), self._call("delete") as delete:
            delete()

    def unlink_all(self) -> None:
        """Delete all objects below this."""
        for path in self.files():
            path.unlink()

    def files(self) -> list[StorePath]:
        """Return all objects below this, sorted."""
        with self._call("list") as find:
            return sorted(StorePath(*self.parts[:2], each["path"]) for batch in find() for each in batch)

    def glob(self, pattern: str) -> Iterator[StorePath]:
        """Yield the objects below this that match the pattern, whose ``**`` is not supported."""
        depth = len(self.parts) + len(PurePosixPath(pattern).parts)
        return (path for path in self.files() if len(path.parts) == depth and path.match(pattern))

    @contextmanager
    def _call(self, name: str) -> Iterator[Any]:
        """Yield a function of the store for this object; errors have the status of an answer, but no more of it."""
        try:
            yield partial(getattr(_store("//".join(self.parts[:2])), name), self._key)
        except Exception as error:
            reason = re.sub(r"(status code: \d+ [\w ]+).*|\?\S*|\\n\\t.*", r"\1", str(error).partition("\n")[0])
            kind = next((each for each in (FileNotFoundError, FileExistsError) if isinstance(error, each)), OSError)
            raise kind(f"{self}: {reason}") from None


class HdfsPath(StorePath):
    """A URL in HDFS.

    HDFS replaces nothing on a condition, but its renames fail if the target exists. So each version of a file that
    ``replace_version`` writes has a name with its number, such as ``x.v7``. Older ones are deleted after a newer one
    was written: a writer that is late, and finds its number unused, finds the newer one, too. A file without a number,
    copied from elsewhere, is version 0.
    """

    @property
    def _key(self) -> str:
        return f"/{super()._key}"

    def mkdir(self, **_: object) -> None:
        """Create the folder, if it is missing."""
        with self._call("mkdirs") as make:
            make(create_parent=True)

    def read(self) -> tuple[bytes, Version]:
        """Return the newest version that ``replace_version`` wrote."""
        while number := max(self._versions().values(), default=0):
            with suppress(FileNotFoundError):  # replaced twice since it was listed
                return self._numbered(number).read_bytes(), {"number": number}
        return self.read_bytes(), {"number": 0}

    def read_bytes(self) -> bytes:
        """Return the content."""
        with self._call("read") as open_file:
            return bytes(open_file().read())

    def write_bytes(self, data: bytes) -> None:
        """Write the file durably. Readers can see a part of it until this returns."""
        from hdfs_native import WriteOptions

        with self._call("create") as create, create(WriteOptions(overwrite=True, create_parent=True)) as file:
            file.write(data)
            with suppress(NotImplementedError):  # erasure-coded
                file.hsync()

    def replace_version(self, data: bytes, version: Version | None) -> Version:
        """Write the version after this one, as ``StorePath`` does."""
        number = 1 if version is None else version["number"] + 1
        new, before = self.with_name(f"{self.name}.new-{uuid.uuid4().hex}"), self._versions()
        with suppress(FileExistsError, FileNotFoundError, IllegalStateError):  # another writer deletes this one's
            if version is None or version["number"] in before.values():  # else deleted with the folder
                new.write_bytes(data)
                new.rename(self._numbered(number))
        new.unlink()
        now = self._require(data)
        for path, each in before.items():
            if each < number - 1:  # readers can have listed the previous one
                path.unlink()
        return now

    def unlink_all(self) -> None:
        """Delete the folder and all below it."""
        with self._call("delete") as delete:
            delete(True)

    def files(self) -> list[StorePath]:
        """Return all files below this, sorted."""
        found = self._list()
        return sorted(chain.from_iterable(path.files() if is_folder else [path] for path, is_folder in found.items()))

    def _numbered(self, number: int) -> HdfsPath:
        return self.with_name(f"{self.name}.v{number}")

    def _versions(self) -> dict[HdfsPath, int]:
        """Return the numbers of all versions, and 0 for files that become one and for a file without a number."""
        pattern = re.compile(re.escape(self.name) + r"(?:\.v([0-9]+)|\.new-[0-9a-f]{32})?")
        found = {path: pattern.fullmatch(path.name) for path in self.parent._list()}
        return {path: int(match[1] or 0) for path, match in found.items() if match is not None}

    def _list(self) -> dict[HdfsPath, bool]:
        """Return what the folder contains, and whether each is a folder; nothing if it does not exist."""
        with suppress(FileNotFoundError), self._call("list_status") as find:
            return {HdfsPath(*self.parts[:2], each.path[1:]): each.isdir for each in find()}
        return {}


def _version(found: Mapping[str, Any]) -> Version:
    return {name: found[name] for name in ("e_tag", "version") if found[name] is not None}


@cache
def _store(root: str) -> Any:
    """Return the store at a URL, which keeps connections and temporary credentials, or the client of an HDFS."""
    if root.startswith("hdfs:"):
        from hdfs_native import Client

        return Client(root, {"dfs.client.failover.max.attempts": "6"})  # 40 s
    from obstore.store import from_url

    endpoint = os.environ.get("AWS_ENDPOINT_URL", "") if root.startswith("s3") else ""
    return from_url(root, client_options={"allow_http": True} if endpoint.startswith("http:") else None)


#: A folder or a file of an archive.
AnyPath: TypeAlias = Path | StorePath


def folder_at(text: str) -> AnyPath:
    """Return the folder at a path or URL.

    Raises:
        ConfigurationError: an archive can't be stored safely at this URL.
    """
    if _URL.match(text) is None:
        return Path(text)
    if _STORED.fullmatch(text) is not None:
        kind, package = (HdfsPath, "hdfs_native") if text.startswith("hdfs:") else (StorePath, "obstore")
        if any(find_spec(name) is None for name in (package, "pandas")):
            raise ConfigurationError(f"{text} needs packages, also on workers: pip install 'jmsaio[store]'")
        return kind(text)
    raise ConfigurationError(
        f"folder {shown(_SECRET.sub('//', text))} looks like a URL that archives can't use: give s3a://BUCKET/FOLDER, "
        "s3://, gs://, abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER or hdfs://NAMENODE/FOLDER, with "
        "credentials in the environment, or the path of a folder that is mounted here and on all workers"
    )


def sync(paths: Iterable[AnyPath]) -> None:
    """Make files and folders of this machine survive a loss of power; those in stores do."""
    for path in paths:
        if isinstance(path, Path):
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            except OSError as error:
                if error.errno != errno.EINVAL or not path.is_dir():  # some file systems can't sync folders
                    raise
            finally:
                os.close(handle)


def remove(folder: AnyPath) -> None:
    """Delete all of a folder."""
    if isinstance(folder, Path):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        folder.unlink_all()
