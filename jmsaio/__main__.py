"""``python -m jmsaio``: the command ``jmsaio``."""

from __future__ import annotations

import sys

from jmsaio.cli import main

if __name__ == "__main__":
    sys.exit(main())
