"""A hunt: draws a sample of mutants, tries them and says which were noticed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

import attrs

from tests.mutants.mutations import Mutation, compiles, mutations
from tests.mutants.trial import Verdict

#: The parts whose tests are held against mutants when none is named.
PACKAGES = ("rules", "codec", "client", "transport")


@attrs.frozen
class Mutant:
    """A mutation of a file of the package; `path` is relative to the tree."""

    path: Path
    mutation: Mutation

    def described(self, root: Path) -> str:
        """Where it is, and the lines that it changes."""
        before, after = self.mutation.shown((root / self.path).read_text(encoding="utf-8"))
        return f"{self.path}:{self.mutation.line} ({self.mutation.kind})\n    {before}\n -> {after}"


class Copied(Protocol):
    """The copy of the tree in which mutants are tried, see `tests.mutants.trial.Copy`."""

    left_out: dict[str, str]

    def write(self, path: Path, text: str) -> None: ...
    def measure(self, tests: Sequence[Path], slow: float) -> None: ...
    def run(self, tests: Sequence[Path]) -> Verdict: ...


class Around(Protocol):
    """Which tests are around a module, see `tests.mutants.neighbours.Neighbours`."""

    def mirrored(self, module: Path) -> list[Path]: ...
    def others(self, module: Path) -> list[Path]: ...
    def part(self, module: Path) -> list[Path]: ...


def modules(root: Path, packages: Sequence[str]) -> list[Path]:
    """The modules of parts of the package.

    Args:
        root: the folder with ``jmsaio``.
        packages: folders or files below it, ``client`` or ``client/session.py``.

    Raises:
        FileNotFoundError: there is no such part.
    """
    found: set[Path] = set()
    for name in packages:
        part = root / "jmsaio" / name
        if not part.exists():
            raise FileNotFoundError(f"there is no jmsaio/{name}")
        found |= {part} if part.is_file() else set(part.rglob("*.py"))
    return sorted(path.relative_to(root) for path in found)


def mutants(root: Path, paths: Sequence[Path]) -> list[Mutant]:
    """Every mutant of some modules."""
    return [Mutant(path, one) for path in paths for one in mutations((root / path).read_text(encoding="utf-8"))]


def sample(root: Path, found: Sequence[Mutant], size: int, seed: int) -> list[Mutant]:
    """As many mutants as wanted, the same ones for the same seed and tree, in the order of the files."""
    order = random.Random(seed).sample(range(len(found)), len(found))
    running = (index for index in order if compiles(_mutated(root, found[index])))
    return [found[index] for index in sorted(islice(running, size))]


def _mutated(root: Path, mutant: Mutant) -> str:
    return mutant.mutation.apply((root / mutant.path).read_text(encoding="utf-8"))


@attrs.define
class Hunt:
    """Tries mutants one after the other.

    Attributes:
        root: the tree that the mutants are of.
        around: which tests are around a module.
        copy: where they are tried.
        also: tests that every mutant must pass by, after those around it.
    """

    root: Path
    around: Around
    copy: Copied
    also: Sequence[Path] = ()

    def stages(self, path: Path) -> list[list[Path]]:
        """The tests that a mutant has to pass by, the nearest first."""
        stages: list[list[Path]] = []
        for tests in (self.around.mirrored(path), self.around.others(path), self.around.part(path), self.also):
            known = {test for stage in stages for test in stage}
            stages.append([test for test in tests if test not in known])
        return [stage for stage in stages if stage]

    def prepare(self, chosen: Sequence[Mutant], slow: float) -> None:
        """Run the tests without a mutant; one that takes more than ``slow`` seconds is left out from then on."""
        paths = {mutant.path for mutant in chosen}
        self.copy.measure(sorted({test for path in paths for stage in self.stages(path) for test in stage}), slow)

    def noticed(self, mutant: Mutant) -> bool:
        """Whether a test fails, or never ends, because of a mutant."""
        self.copy.write(mutant.path, _mutated(self.root, mutant))
        try:
            return any(self.copy.run(stage) is not Verdict.PASSED for stage in self.stages(mutant.path))
        finally:
            self.copy.write(mutant.path, (self.root / mutant.path).read_text(encoding="utf-8"))
