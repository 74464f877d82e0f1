"""Run a real Apache Pulsar broker on this machine, with transactions and Starlight's server-side selector filter.

No Docker: the broker runs on Java 17 or newer from artifacts that Maven downloads once. `fetch` downloads them;
`start`, `stop`, `status` and `logs` control one broker per state directory; `pack_filter` writes the filter
to a folder for brokers that run elsewhere. All calls block; from a coroutine use ``anyio.to_thread.run_sync``.

    from jmsaio import launcher

    broker = launcher.start(launcher.StartOptions(), print)
    ...                                  # jmsaio.connect(broker.client_url())
    launcher.stop()
"""

import sys

from jmsaio.launcher.errors import LauncherError

if sys.platform == "win32":
    raise LauncherError("the launcher needs Linux or macOS; on Windows run Pulsar in WSL or in a container")

from jmsaio.launcher.broker import fetch, start, status, stop
from jmsaio.launcher.errors import DownloadError, PortTakenError, StartError, ToolError
from jmsaio.launcher.maven import JAVA_CLIENT, Progress, fetch_jars, pack_filter
from jmsaio.launcher.settings import BROKER_VERSION, StartOptions, cache_directory, state_directory
from jmsaio.launcher.state import BrokerStatus, logs
from jmsaio.launcher.tools import missing

__all__ = [
    "BROKER_VERSION",
    "JAVA_CLIENT",
    "BrokerStatus",
    "DownloadError",
    "LauncherError",
    "PortTakenError",
    "Progress",
    "StartError",
    "StartOptions",
    "ToolError",
    "cache_directory",
    "fetch",
    "fetch_jars",
    "logs",
    "missing",
    "pack_filter",
    "start",
    "state_directory",
    "status",
    "stop",
]
