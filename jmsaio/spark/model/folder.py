"""Folders of archives: paths, and URLs in object stores that replace an object only on a condition."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final, TypeAlias

from jmsaio.errors import ConfigurationError, IllegalStateError

#: Beginning of a URL, also if a path has merged its two slashes.
_URL: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]+:/")
#: URLs of stores with conditional writes, without credentials.
_STORED: Final = re.compile("((s3a?|gs)://[^/@:?#]+|abfss?://[^/@:?#]+@[^/@:?#]+)/[^?#]*[^?#/]/*")
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
        """Return the same URL for all schemes that name the same object."""
        return StorePath(re.sub("^(s3|abfs)[as]:", r"\1:", str(self)))

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
        found, now = self.read()
        if found == data:  # an earlier attempt was successful, but its answer was lost
            return now
        raise IllegalStateError(f"another run archives into {self.parent}: wait for its end, or name another folder")

    def rename(self, target: PurePath) -> None:
        """Copy the object, and delete this one; raise IllegalStateError if another run deleted it."""
        try:
            with self._call("rename") as rename:
                rename("/".join(target.parts[2:]))
        except FileNotFoundError:
            raise IllegalStateError(f"another run archives into the same folder: it deleted {self}") from None

    def unlink(self) -> None:
        """Delete the object, if it exists."""
        with suppress(FileNotFoundError), self._call("delete") as delete:
            delete()

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
        """Yield a function of obstore, bound to this object; errors have the status of an answer, but no more of it."""
        import obstore

        try:
            store = _store("//".join(self.parts[:2]))
            yield lambda *more, **options: getattr(obstore, name)(store, "/".join(self.parts[2:]), *more, **options)
        except Exception as error:
            reason = re.sub(r"(status code: \d+ [\w ]+).*|\?\S*", r"\1", str(error).partition("\n")[0])
            kind = FileNotFoundError if isinstance(error, FileNotFoundError) else OSError
            raise kind(f"{self}: {reason}") from None


def _version(found: Mapping[str, Any]) -> Version:
    return {name: found[name] for name in ("e_tag", "version") if found[name] is not None}


@cache
def _store(root: str) -> Any:
    """Return the store at a URL; it keeps connections and temporary credentials."""
    from obstore.store import from_url

    return from_url(root)


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
        if any(find_spec(name) is None for name in ("obstore", "pandas")):
            raise ConfigurationError(f"{text} needs packages, also on workers: pip install 'jmsaio[store]'")
        return StorePath(text)
    raise ConfigurationError(
        f"folder {_SECRET.sub('//', text)!r} looks like a URL that archives can't use: give s3a://BUCKET/FOLDER, "
        "s3://, gs:// or abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER, with credentials in the environment, or "
        "the path of a folder that is mounted here and on all workers"
    )


def remove(folder: AnyPath) -> None:
    """Delete all of a folder."""
    if isinstance(folder, Path):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        for path in folder.files():
            path.unlink()
