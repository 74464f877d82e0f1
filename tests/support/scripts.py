"""Loads the project's scripts that lie outside of any package."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from tests.support.documents import ROOT


def load(path: str) -> ModuleType:
    """The script as a module.

    Args:
        path: where it lies, below the project's root.
    """
    spec = importlib.util.spec_from_file_location(path.replace("/", "_").strip("._"), ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
