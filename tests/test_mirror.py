"""Each module has its tests at the same place: ``jmsaio/a/b.py`` in ``tests/a/test_b.py``."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]


def mirror(path: Path) -> Path:
    """Where the tests of a module lie; a leading underscore is left out."""
    return Path("tests", *path.parts[1:-1], f"test_{path.stem.lstrip('_')}.py")


def test_each_module_has_its_tests() -> None:
    """Packages' ``__init__`` and ``__main__`` are tested through what they offer."""
    modules = [path.relative_to(ROOT) for path in sorted((ROOT / "jmsaio").rglob("*.py"))]
    wanted = {str(path): str(mirror(path)) for path in modules if not path.stem.startswith("__")}
    assert {path: test for path, test in wanted.items() if not (ROOT / test).exists()} == {}


def test_names() -> None:
    assert mirror(Path("jmsaio/a/_b.py")) == Path("tests/a/test_b.py")
    assert mirror(Path("jmsaio/errors.py")) == Path("tests/test_errors.py")
