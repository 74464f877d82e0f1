"""Secrets by reference: ``file:NAME`` and ``env:NAME`` for the contents of a file or an environment variable.

Options travel with every task, and a SQL catalog stores them, so they reference a secret instead of containing it. The
secret is read by the process that connects, for each new connection.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from jmsaio.config.declaring import directory
from jmsaio.config.options import Kind, Section, Status
from jmsaio.errors import ConfigurationError
from jmsaio.spark.options.values import refuse

Folder = str | os.PathLike[str]

_FILE, _ENV = "file:", "env:"
#: Options that name a file, which Spark can have distributed.
_FILE_OPTIONS: Final = ("tlsTrustCertsFilePath", "tlsKeyFilePath", "tlsCertificateFilePath")
#: Members of ``authParams`` that name a file, by plug-in; parameters with these and no other secret are not secret.
_FILE_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "tls": ("tlsCertFile", "tlsKeyFile"),
    "oauth2": ("privateKey", "private_key"),
    "token": ("file",),
}
_SECRET_MEMBERS: Final = frozenset({"token", "password", "clientSecret", "client_secret"})
#: Contents of a file that has only a token, without a blank or the end of a line.
_BARE_TOKEN: Final = re.compile(r"(?!\{|token:|file:)[!-~]+")
_log = logging.getLogger(__name__)
_OPTIONS: Final = {option.name: option for section in Section for option in directory(section).options}
#: Options given by reference.
SECRETS: Final = tuple(
    name for name, each in _OPTIONS.items() if each.kind is Kind.SECRET and each.status is Status.BUILT
)
#: Prefixes of names whose rest the user chooses; Spark has converted it to lower case.
MAPS: Final = tuple(f"{name}." for name, option in _OPTIONS.items() if option.kind is Kind.MAP)


def is_reference(text: str) -> bool:
    return text.startswith((_FILE, _ENV))


def check_secret(name: str, text: str, plugin: str | None, *, allowed: bool) -> None:
    """Refuse a secret in the text of an option, or warn if it is ``allowed``; parameters that name files are none."""
    if is_reference(text):
        if not text.partition(":")[2].strip("/"):
            raise refuse(name, text, "names nothing; write file:NAME or env:NAME")
        return
    members, files = _members(plugin, text)
    inline = any(str(members[file]).startswith("data:") for file in files)
    if files and not inline and _SECRET_MEMBERS.isdisjoint(members):
        return
    if not allowed:
        reason = (
            "a secret does not belong in an option, which travels with every task; write file:NAME or "
            "env:NAME, or set allowInlineSecret=true"
        )
        raise ConfigurationError(f"option {name}: {reason}", key=name)
    _log.warning("option %s holds a secret, which travels with every task: write file:NAME or env:NAME instead", name)


def resolve_secrets(connection: Mapping[str, str], folders: Sequence[Folder] = ()) -> dict[str, str]:
    """Return the connection options with the current values of their references.

    ``file:NAME`` is the text of a file without surrounding whitespace. A relative name is resolved in ``folders``, such
    as the one of the files that Spark distributes, then in the working directory. Percent signs are read as in a URI,
    so that Pulsar's ``file:///path`` keeps its meaning. A file that contains only the token stays a reference for the
    plug-in ``token``, which reads it at each reconnect. Files in ``authParams`` are resolved in the same folders.
    """
    resolved = dict(connection)
    plugin = connection.get("authPlugin")
    for name in SECRETS:
        if name in connection:
            resolved[name] = _resolved(name, connection[name], plugin, folders)
    for name in _FILE_OPTIONS:
        if name in connection:
            resolved[name] = _located(connection[name], folders)
    return resolved


def _resolved(name: str, text: str, plugin: str | None, folders: Sequence[Folder]) -> str:
    if text.startswith(_ENV):
        reference, text = text, os.environ.get(text[len(_ENV) :].strip(), "").strip()
        if not text:
            raise refuse(name, reference, "there is no such environment variable here, or it is empty")
    elif text.startswith(_FILE):
        path, content = _read(name, text, folders)
        text = content.strip()
        if name == "authParams" and _kind(plugin) == "token" and _BARE_TOKEN.fullmatch(content):
            return _FILE + quote(str(path))
    members, files = _members(plugin, text) if name == "authParams" else ({}, [])
    for member in files:
        members[member] = _located(str(members[member]), folders)
    return json.dumps(members) if files else text


def _read(name: str, reference: str, folders: Sequence[Folder]) -> tuple[Path, str]:
    given = unquote(reference[len(_FILE) :])
    given = "/" + given.lstrip("/") if given.startswith("/") else given
    tried = [Path(folder, given).absolute() for folder in (*folders, Path.cwd())]
    path = next(filter(Path.is_file, tried), None)
    if path is None:
        where = " nor in ".join(dict.fromkeys(str(path.parent) for path in tried))
        raise refuse(name, reference, f"there is no such file in {where}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise refuse(name, reference, "the file is no text in UTF-8") from None
    except OSError as error:
        raise refuse(name, reference, f"the file can't be read: {error.strerror or type(error).__name__}") from None
    if not text.strip():
        raise refuse(name, reference, "the file is empty")
    return path, text


def _kind(plugin: str | None) -> str:
    return (plugin or "").rpartition(".")[2].lower().removeprefix("authentication")


def _members(plugin: str | None, text: str) -> tuple[dict[str, object], list[str]]:
    """Return the members of ``authParams`` in JSON, or in the own format of ``tls``, and which of them name a file."""
    members: dict[str, object] = {}
    if text.lstrip().startswith("{"):
        with suppress(ValueError):
            members = json.loads(text)
    elif _kind(plugin) == "tls":
        members = {name.strip(): value.strip() for name, _, value in (part.partition(":") for part in text.split(","))}
    return members, [name for name in _FILE_MEMBERS.get(_kind(plugin), ()) if name in members]


def _located(name: str, folders: Sequence[Folder]) -> str:
    """Return the absolute path of a file in one of the folders, else the name unchanged; ``file:`` is kept."""
    given = name.removeprefix(_FILE)
    for folder in folders:
        path = Path(folder, given).absolute()
        if not given.startswith("/") and path.is_file():
            return f"{_FILE}//{path}" if given != name else str(path)
    return name


def shown_connection(connection: Mapping[str, str]) -> str:
    """Return the options for ``repr``: secrets as ``***``, references unchanged."""
    secret = {name for name, option in _OPTIONS.items() if option.secret}
    return repr({
        name: "***" if name.startswith(MAPS) or (name in secret and not is_reference(text)) else text
        for name, text in connection.items()
    })  # fmt: skip
