"""Errors of the local broker; each message says what to do.

JMSError
└── LauncherError               base of all errors of this package
    ├── ToolError               Java or Maven is missing or too old
    ├── DownloadError           Maven could not download a file
    ├── PortTakenError          another program listens on a port; has the port number
    └── StartError              the broker ended or was not ready in time; has the end of its log
"""

from __future__ import annotations

from jmsaio.errors import JMSError


class LauncherError(JMSError):
    """The local broker can't be fetched, started or stopped."""


class ToolError(LauncherError):
    """Java or Maven is missing or too old.

    Attributes:
        tool: name of the command (``java``, ``javac`` or ``mvn``).
    """

    def __init__(self, reason: str = "", tool: str | None = None, *, error_code: str | None = None) -> None:
        super().__init__(reason, error_code)
        self.tool = tool


class DownloadError(LauncherError):
    """Maven could not download a file.

    Attributes:
        output: last lines of Maven's output.
    """

    def __init__(self, reason: str = "", output: str = "", *, error_code: str | None = None) -> None:
        super().__init__(reason, error_code)
        self.output = output


class PortTakenError(LauncherError):
    """Another program listens on a port that the broker needs.

    Attributes:
        port: port number.
    """

    def __init__(self, reason: str = "", port: int | None = None, *, error_code: str | None = None) -> None:
        super().__init__(reason, error_code)
        self.port = port


class StartError(LauncherError):
    """The broker ended during its start, or was not ready in time.

    Attributes:
        log_tail: last lines of the broker's log.
    """

    def __init__(self, reason: str = "", log_tail: str = "", *, error_code: str | None = None) -> None:
        super().__init__(reason, error_code)
        self.log_tail = log_tail
