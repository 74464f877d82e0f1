"""``python -m tests.support.prepared_pytest``: runs pytest again and again, each time in a fork of one process.

What `tests.conftest` imports is imported once; every run loads its plugins and `tests.conftest` anew. A line of JSON on
standard input asks for a run: ``arguments``, ``environ`` (the whole environment) and ``output``, the file for what the
run prints. The answer is a line with its exit status.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from tests.kit import broker_fixtures, java_fixtures, tiers
from tests.support import prerequisites

#: Imported for the forks.
PREPARED = (broker_fixtures, java_fixtures, tiers, prerequisites)
#: Else pytest warns that it can't rewrite the assertions of what is imported already.
OPTIONS = ("-W", "ignore::pytest.PytestAssertRewriteWarning")


def main() -> None:
    """Serve until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            sys.exit(run(**request))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def run(arguments: list[str], environ: dict[str, str], output: str) -> Any:
    """One run, in a process that has nothing else to do."""
    os.environ.clear()
    os.environ.update(environ)
    printed = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for standard, own in enumerate((nothing, printed, printed)):
        os.dup2(own, standard)
    return pytest.main([*OPTIONS, *arguments])


if __name__ == "__main__":
    main()
