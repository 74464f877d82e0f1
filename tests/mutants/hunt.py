"""A hunt: draws a sample of mutants, tries them and says which were noticed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol

import attrs

from tests.mutants.mutations import Mutation, compiles, mutations
from tests.mutants.trial import Needs, Verdict

#: The parts whose tests are held against mutants when none is named.
PACKAGES = ("rules", "codec", "client", "transport")
#: The part whose promises are partly those of a real broker, and the tests of what every transport promises.
ON_A_BROKER = Path("jmsaio/transport/pulsar")
CONTRACT = Path("tests/transport/contract")


@attrs.frozen
class Mutant:
    """A mutation of a file of the package; `path` is relative to the tree."""

    path: Path
    mutation: Mutation

    def described(self, root: Path) -> str:
        """Where it is, and the lines that it changes."""
        before, after = self.mutation.shown((root / self.path).read_text(encoding="utf-8"))
        return f"{self.path}:{self.mutation.line} ({self.mutation.kind})\n    {before}\n -> {after}"


@attrs.frozen
class Stage:
    """Files of tests, and which of their tests are run."""

    tests: Sequence[Path]
    needs: Needs


class Copied(Protocol):
    """The copy of the tree in which mutants are tried, see `tests.mutants.trial.Copy`."""

    left_out: dict[str, str]

    def write(self, path: Path, text: str) -> None: ...
    def measure(self, tests: Sequence[Path], needs: Needs, slow: float, processes: int = 1) -> None: ...
    def run(self, tests: Sequence[Path], needs: Needs) -> Verdict: ...
    def twin(self) -> Copied: ...


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
        broker: what no other test noticed in `ON_A_BROKER` must pass by the tests around it that need a broker, too.
    """

    root: Path
    around: Around
    copy: Copied
    also: Sequence[Path] = ()
    broker: bool = False

    def stages(self, path: Path) -> list[Stage]:
        """The tests that a mutant has to pass by, the nearest first."""
        mirrored, part = self.around.mirrored(path), self.around.part(path)
        stages = _staged(Needs.PYTHON, mirrored, self.around.others(path), part, self.also)
        if self.broker and path.is_relative_to(ON_A_BROKER):
            contract = [test for test in part if test.is_relative_to(CONTRACT)]
            stages += _staged(Needs.BROKER, mirrored, contract, part)
        return stages

    def prepare(self, chosen: Sequence[Mutant], slow: float, processes: int = 1) -> None:
        """Run the tests without a mutant; one that takes more than ``slow`` seconds is left out from then on."""
        stages = [stage for path in {mutant.path for mutant in chosen} for stage in self.stages(path)]
        for needs in Needs:
            tests = {test for stage in stages if stage.needs is needs for test in stage.tests}
            if tests:
                self.copy.measure(sorted(tests), needs, slow, processes)

    def twins(self, count: int) -> list[Hunt]:
        """As many hunts as wanted, this one among them, that can go on at the same time after `prepare`."""
        return [self, *(attrs.evolve(self, copy=self.copy.twin()) for _ in range(count - 1))]

    def noticed(self, mutant: Mutant) -> bool:
        """Whether a test fails, or never ends, because of a mutant."""
        self.copy.write(mutant.path, _mutated(self.root, mutant))
        try:
            return any(
                self.copy.run(stage.tests, stage.needs) is not Verdict.PASSED for stage in self.stages(mutant.path)
            )
        finally:
            self.copy.write(mutant.path, (self.root / mutant.path).read_text(encoding="utf-8"))


def _staged(needs: Needs, *groups: Sequence[Path]) -> list[Stage]:
    """Groups of tests, each without those of the groups before it."""
    stages: list[Stage] = []
    for tests in groups:
        known = {test for stage in stages for test in stage.tests}
        stages.append(Stage([test for test in tests if test not in known], needs))
    return [stage for stage in stages if stage.tests]


def tried(hunts: Sequence[Hunt], chosen: Sequence[Mutant]) -> Iterator[tuple[Mutant, bool]]:
    """Try mutants, as many at once as there are hunts, each with a copy of its own.

    Yields:
        Each mutant, in the order given, and whether it was noticed.
    """
    free: SimpleQueue[Hunt] = SimpleQueue()
    for hunt in hunts:
        free.put(hunt)

    def noticed(mutant: Mutant) -> bool:
        hunt = free.get()
        try:
            return hunt.noticed(mutant)
        finally:
            free.put(hunt)

    with ThreadPoolExecutor(len(hunts)) as pool:
        yield from zip(chosen, pool.map(noticed, chosen), strict=True)
