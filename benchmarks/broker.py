"""What a run needs from outside Python: a broker of its own, and the Java client's jars."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from jmsaio import launcher


@contextlib.contextmanager
def started_broker() -> Iterator[launcher.BrokerStatus]:
    """Return a fresh broker on free ports while the context lasts; its data are deleted afterwards.

    Raises LauncherError when Java or Maven is missing, a download fails, or the broker does not start.
    """
    with tempfile.TemporaryDirectory(prefix="jmsaio-bench-broker-") as folder:
        home = Path(folder)
        options = launcher.StartOptions(broker_port=0, web_port=0, state_directory=home)
        broker = launcher.start(options, _tell)
        try:
            yield broker
        finally:
            launcher.stop(directory=home)


def java_jars(folder: Path | None) -> list[Path]:
    """Return the Java client's jars: those in ``folder``, else fetched once through Maven; none without JDK or Maven.

    Raises LauncherError when a download fails, FileNotFoundError when ``folder`` has no jar.
    """
    if shutil.which("javac") is None:
        return []
    if folder is not None:
        jars = sorted(folder.glob("*.jar"))
        if not jars:
            raise FileNotFoundError(f"no jar in {folder}")
        return jars
    reasons = launcher.missing("java", "mvn")
    if reasons:
        _tell(f"without the Java peer: {'; '.join(reasons)}")
        return []
    return launcher.fetch_jars(launcher.JAVA_CLIENT, _tell)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
