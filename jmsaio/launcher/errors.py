"""What can go wrong around the local broker; each error says what to do about it.

JMSError
└── LauncherError               anything this package raises on purpose
    ├── ToolError               Java or Maven is missing or too old
    ├── DownloadError           Maven could not download a file
    ├── PortTakenError          something else listens on the port; carries it
    └── StartError              the broker ended or was not ready in time; carries the end of its log
"""

from __future__ import annotations

from jmsaio.errors import JMSError


class LauncherError(JMSError):
    """The local broker can't be fetched, started or stopped."""


class ToolError(LauncherError):
    """Java or Maven is missing or too old.

    Attributes:
        tool: the command's name (``java``, ``javac`` or ``mvn``).
    """

    def __init__(self, reason: str = "", tool: str | None = None, *, error_code: str | None = None) -> None:
        super().__init__(reason, error_code)
        self.tool = tool


class DownloadError(LauncherError):
    """Maven could not download a file.

    Attributes:
        output: the end of Maven's output.
    """

    def __init__(self, reason: str = "", output: str = "", *, error_code: str | None = None) -> None:
        super().__init__(reason, error_code)
        self.output = output


class PortTakenError(LauncherError):
    """Something else listens on a port that the broker needs.

    Attributes:
        port: the port's number.
    """

    def __init__(self, reason: str = "", port: int | None = None, *, error_code: str | None = None) -> None:
        super().__init__(reason, error_code)
        self.port = port


class StartError(LauncherError):
    """The broker ended while it started, or was not ready in time.

    Attributes:
        log_tail: the last lines of the broker's log.
    """

    def __init__(self, reason: str = "", log_tail: str = "", *, error_code: str | None = None) -> None:
        super().__init__(reason, error_code)
        self.log_tail = log_tail
