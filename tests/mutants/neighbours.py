"""Which tests are around a module: found by where files lie and what they import, never by a list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.support import layers
from tests.test_mirror import mirror

#: What the whole package or every test has is around nothing in particular.
EVERYWHERE = frozenset({"jmsaio"})
_NAME = re.compile(r"^\s*(?:from|import)\s+(jmsaio[\w.]*)(?:\s+import\s+([^#\n]*))?", re.MULTILINE)


class Neighbours:
    """The tests around each module of a tree.

    Args:
        root: the folder with ``jmsaio`` and ``tests``.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        modules = [module for module in layers.read(root) if module.name not in EVERYWHERE]
        self._paths = {module.path: module.name for module in modules}
        self._tests = {module.name: mirror(module.path) for module in modules}
        self._importers: dict[str, set[str]] = {module.name: set() for module in modules}
        for module in modules:
            for each in module.imports:
                if each.target in self._importers and each.target != module.name:
                    self._importers[each.target].add(module.name)
        self._users = self._read_users()
        self._divided = {part for group in layers.STRANGERS for part in _divided(group)}

    def mirrored(self, module: Path) -> list[Path]:
        """The tests at the same path as the module, when there are any."""
        return self._existing([mirror(module)])

    def others(self, module: Path) -> list[Path]:
        """Tests that import the module, and the mirrored tests of modules that import it; the nearest first."""
        names = self._with_packages(self._paths[module])
        users = {path for name in names for path in self._users.get(name, ())}
        importers = {other for name in names for other in self._importers[name]} - names
        mirrors = {self._tests[name] for name in importers}
        near = mirror(module).parent
        found = sorted(users | mirrors, key=lambda path: (path.parent != near, str(path)))
        return [path for path in self._existing(found) if path != mirror(module)]

    def part(self, module: Path) -> list[Path]:
        """All tests of the part that the module belongs to, such as ``client`` or ``transport/memory``.

        Folders of tests that mirror no package, such as those of a contract, belong to every part beside them.
        """
        top, own = mirror(module).parts[1], mirror(module).parts[:3]
        found = sorted(path.relative_to(self._root) for path in (self._root / "tests" / top).rglob("test_*.py"))
        return [path for path in found if path.parts[:3] == own or not self._mirrors_a_package(path)]

    def _mirrors_a_package(self, path: Path) -> bool:
        """Whether a file of tests lies in the folder of another part of a part, as ``tests/transport/pulsar``."""
        folder = self._root / "jmsaio" / Path(*path.parts[1:3])
        return path.parts[1] in self._divided and folder.is_dir()

    def _existing(self, paths: list[Path]) -> list[Path]:
        return [path for path in paths if (self._root / path).is_file()]

    def _with_packages(self, name: str) -> set[str]:
        """A module, and the packages that hand it on."""
        names = {name}
        while package := next(
            (
                importer
                for name in names
                for importer in self._importers[name]
                if importer not in names and layers.inside(name, importer)
            ),
            None,
        ):
            names.add(package)
        return names

    def _read_users(self) -> dict[str, set[Path]]:
        """The files of tests that import each module, themselves or through the conftest of their folder."""
        users: dict[str, set[Path]] = {}
        for path in sorted((self._root / "tests").rglob("*.py")):
            relative = path.relative_to(self._root)
            if path.name == "conftest.py" and len(relative.parts) > 2:
                tests = {each.relative_to(self._root) for each in path.parent.glob("test_*.py")}
            elif path.name.startswith("test_"):
                tests = {relative}
            else:
                continue
            for name in _imported(path.read_text(encoding="utf-8")):
                users.setdefault(name, set()).update(tests)
        return users


def _imported(text: str) -> Iterator[str]:
    """What a file imports of the package, as far as its lines tell."""
    for module, names in _NAME.findall(text):
        yield module
        for name in re.findall(r"\w+", names):
            yield f"{module}.{name}"


def _divided(strangers: tuple[str, ...]) -> Iterator[str]:
    """The part whose own parts never import each other, so that tests of one say nothing of another."""
    parents = {name.rpartition(".")[0] for name in strangers} - {"jmsaio"}
    yield from (parent.partition(".")[2] for parent in parents)
