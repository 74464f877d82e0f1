"""A child process has another count of forks than its parent."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FORKS = """
import os
from jmsaio.transport import forks
before, child = forks.count, os.fork()
if child == 0:
    os._exit(forks.count - before)
print(forks.count - before, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_child_counts_one_more() -> None:
    ran = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.split() == ["0", "1"]
