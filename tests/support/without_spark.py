"""``pytest -p tests.support.without_spark``: a run on a machine where the extra ``spark`` is not installed."""

from __future__ import annotations

import sys

for name in ("pyarrow", "pyspark"):
    sys.modules[name] = None  # type: ignore[assignment] # so Python marks a module that can't be imported
