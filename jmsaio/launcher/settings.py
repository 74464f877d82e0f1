"""Settings of the broker: its directories, the user's options, the broker's settings file, the command line."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

import attrs

from jmsaio.model.durations import TEN_YEARS

#: Version of Apache Pulsar to download; not every release is complete on Maven Central, but this one is.
BROKER_VERSION = "4.0.7"
#: Configuration of the broker's log files and their sizes; a data file, copied into the state directory.
LOGGING = "log4j2.xml"

_MEMORY = re.compile(r"\d+[kKmMgG]")
_FRAME_PADDING = 10 * 1024  # bytes, as added by Pulsar's own client of the storage
_PORT = attrs.validators.in_(range(65536))  # 0 stands for any free one
_OPENS = ("java.nio", "jdk.internal.misc", "sun.net", "java.lang", "java.util", "java.util.zip")


def cache_directory() -> Path:
    """Return the download cache: ``$JMSAIO_CACHE``, or ``jmsaio`` in the user's cache (``$XDG_CACHE_HOME``)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return _absolute(os.environ.get("JMSAIO_CACHE") or Path(base) / "jmsaio")


def state_directory() -> Path:
    """Return the broker's directory: ``$JMSAIO_STATE``, or ``jmsaio/broker`` below ``$XDG_STATE_HOME``."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return _absolute(os.environ.get("JMSAIO_STATE") or Path(base) / "jmsaio" / "broker")


def data_text(name: str) -> str:
    return (files("jmsaio.launcher") / "data" / name).read_text(encoding="utf-8")


def _absolute(path: Path | str) -> Path:
    return Path(path).expanduser().absolute()


def _memory(_: object, attribute: attrs.Attribute[str], value: str) -> None:
    if _MEMORY.fullmatch(value) is None:
        raise ValueError(f"{attribute.name} must be a number followed by k, m or g, not '{value}'")


@attrs.frozen(kw_only=True)
class StartOptions:
    """Options for starting a local broker.

    Attributes:
        broker_port: port of the binary protocol (``pulsar://``); 0: any free port.
        web_port: port of the REST interface; 0: any free port.
        state_directory: the broker's own folder (data, log, settings); one per broker.
        memory: maximum Java heap size, and separately of memory outside the heap, in Java's notation (``2g``).
        timeout: seconds to wait until the broker is ready.
        fresh: delete the data of an earlier broker in the folder.
        filters: load Starlight's server-side selector filter.
        auth: ``token``: clients must authenticate with a token (see `jmsaio.launcher.auth`); None: everything is
            allowed to everyone.
        settings: additional broker settings by their Pulsar names; they override the launcher's.

    Raises:
        ValueError: a port, the memory size or the time-out is invalid.
    """

    broker_port: int = attrs.field(default=6650, validator=_PORT)
    web_port: int = attrs.field(default=8080, validator=_PORT)
    state_directory: Path = attrs.field(factory=state_directory, converter=_absolute)
    memory: str = attrs.field(default="2g", validator=_memory)
    timeout: float = attrs.field(default=120.0, validator=[attrs.validators.gt(0), attrs.validators.le(TEN_YEARS)])
    fresh: bool = False
    filters: bool = True
    auth: str | None = attrs.field(default=None, validator=attrs.validators.in_((None, "token")))
    settings: Mapping[str, str] = attrs.field(factory=dict)


def parse_settings(text: str) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.lstrip().startswith("#"))
    return {name.strip(): value.strip() for name, value in pairs}


def features() -> dict[str, str]:
    """Return the settings that every broker for jmsaio has (``data/features.conf``)."""
    return parse_settings(data_text("features.conf"))


def loopback_interface() -> str:
    """Return the system's name of the interface of 127.0.0.1: ``lo`` on Linux, ``lo0`` on BSD and macOS."""
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in ("lo", "lo0") if name in names), "lo")


def broker_settings(
    options: StartOptions, filter_directory: Path, authentication: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return all settings of a local broker; the user's override the others. The options must contain actual ports."""
    filled = Template(data_text("standalone.conf")).substitute(
        broker_port=options.broker_port,
        web_port=options.web_port,
        filter_directory=filter_directory,
        loopback=loopback_interface(),
    )
    settings = features() | parse_settings(filled)
    if not options.filters:
        settings = {name: value for name, value in settings.items() if not name.startswith("entryFilter")}
    return settings | dict(authentication or {}) | _frame_size(options.settings) | dict(options.settings)


def _frame_size(given: Mapping[str, str]) -> dict[str, str]:
    """Return the storage's limit for a message size chosen by the user: larger by the data that surrounds a message."""
    size = given.get("maxMessageSize", "")
    return {"nettyMaxFrameSizeBytes": str(int(size) + _FRAME_PADDING)} if size.isdecimal() else {}


def render(settings: Mapping[str, str]) -> str:
    """Format the text of a settings file. Raises ValueError if a name or value does not fit on one line."""
    for name, value in settings.items():
        if not name or re.search(r"[\s=#]", name) is not None or "\n" in value or "\r" in value:
            raise ValueError(f"'{name}={value}' is not a broker setting")
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def command(java: Path, jars: Path, options: StartOptions) -> Sequence[str]:
    opens = [*(f"java.base/{package}" for package in _OPENS), "java.management/sun.management"]
    return [
        str(java), f"-Xmx{options.memory}", f"-XX:MaxDirectMemorySize={options.memory}",
        *(part for package in opens for part in ("--add-opens", f"{package}=ALL-UNNAMED")),
        "-Dio.netty.tryReflectionSetAccessible=true", f"-Dlog4j2.configurationFile={LOGGING}",
        "-cp", f"{jars}/*", "org.apache.pulsar.PulsarStandaloneStarter",
        "--config", "standalone.conf", "--no-stream-storage", "--no-functions-worker",
        "--metadata-dir", "data/metadata", "--bookkeeper-dir", "data/bookkeeper", "-a", "127.0.0.1",
    ]  # fmt: skip
