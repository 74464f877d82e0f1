"""A hunt draws the same sample again, asks the nearest tests first, and leaves the copy as it was."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from tests.mutants.hunt import Hunt, Mutant, Stage, modules, mutants, sample, tried
from tests.mutants.trial import Needs, Verdict

SOURCE = "def f(a, b):\n    return a < b or a + 1 > b * 2\n"
MODULE = Path("jmsaio/rules/a.py")
NEAREST, OTHER, ALSO = Path("tests/rules/test_a.py"), Path("tests/test_b.py"), Path("tests/test_c.py")
PART = Path("tests/rules/test_d.py")


class Around:
    def mirrored(self, module: Path) -> list[Path]:
        return [NEAREST]

    def others(self, module: Path) -> list[Path]:
        return [OTHER]

    def part(self, module: Path) -> list[Path]:
        return [NEAREST, PART]


@attrs.define
class Copied:
    """A copy whose tests fail when one of them is in ``failing`` and the module is changed."""

    failing: Sequence[Path] = ()
    verdict: Verdict = Verdict.FAILED
    text: str = SOURCE
    measured: list[Path] = attrs.field(factory=list)
    ran: list[Path] = attrs.field(factory=list)
    left_out: dict[str, str] = attrs.field(factory=dict)

    def write(self, path: Path, text: str) -> None:
        assert path == MODULE
        self.text = text

    def measure(self, tests: Sequence[Path], needs: Needs, slow: float, processes: int = 1) -> None:
        assert needs is Needs.PYTHON
        self.measured += tests

    def twin(self) -> Copied:
        return attrs.evolve(self, ran=[])

    def run(self, tests: Sequence[Path], needs: Needs) -> Verdict:
        assert needs is Needs.PYTHON
        self.ran += tests
        return self.verdict if self.text != SOURCE and set(tests) & set(self.failing) else Verdict.PASSED


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    path = tmp_path / MODULE
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    return tmp_path


@pytest.fixture
def mutant(tree: Path) -> Mutant:
    return sample(tree, mutants(tree, [MODULE]), 1, seed=1)[0]


def test_the_same_seed_draws_the_same_sample(tree: Path) -> None:
    found = mutants(tree, modules(tree, ["rules"]))
    assert len(found) > 5
    assert sample(tree, found, 3, seed=7) == sample(tree, found, 3, seed=7)
    assert len({tuple(sample(tree, found, 3, seed=seed)) for seed in range(20)}) > 1


def test_a_sample_is_never_larger_than_what_there_is(tree: Path) -> None:
    found = mutants(tree, [MODULE])
    assert sample(tree, found, 1000, seed=1) == found


def test_a_part_is_a_folder_or_a_file(tree: Path) -> None:
    assert modules(tree, ["rules"]) == modules(tree, ["rules/a.py"]) == [MODULE]
    with pytest.raises(FileNotFoundError, match="jmsaio/rulez"):
        modules(tree, ["rulez"])


@pytest.mark.parametrize(
    ("failing", "ran"),
    [
        ([NEAREST], [NEAREST]),
        ([OTHER], [NEAREST, OTHER]),
        ([PART], [NEAREST, OTHER, PART]),
        ([ALSO], [NEAREST, OTHER, PART, ALSO]),
    ],
)
def test_the_nearest_tests_come_first_and_the_rest_only_when_they_pass(
    tree: Path, mutant: Mutant, failing: list[Path], ran: list[Path]
) -> None:
    copied = Copied(failing)
    assert Hunt(tree, Around(), copied, [ALSO]).noticed(mutant)
    assert copied.ran == ran


def test_tests_that_never_end_have_noticed_it(tree: Path, mutant: Mutant) -> None:
    assert Hunt(tree, Around(), Copied([NEAREST], Verdict.STUCK)).noticed(mutant)


def test_what_no_test_tells_is_not_noticed_and_the_copy_is_as_before(tree: Path, mutant: Mutant) -> None:
    copied = Copied()
    assert not Hunt(tree, Around(), copied).noticed(mutant)
    assert copied.text == SOURCE


def test_every_test_that_may_judge_is_run_without_a_mutant_first(tree: Path, mutant: Mutant) -> None:
    copied = Copied()
    Hunt(tree, Around(), copied, [ALSO]).prepare([mutant], slow=1.0)
    assert copied.measured == sorted([NEAREST, OTHER, PART, ALSO])


def test_several_copies_try_each_mutant_once_and_tell_of_them_in_their_order(tree: Path) -> None:
    chosen = mutants(tree, [MODULE])
    hunts = Hunt(tree, Around(), Copied([NEAREST])).twins(3)
    assert list(tried(hunts, chosen)) == [(mutant, True) for mutant in chosen]
    copies = [hunt.copy for hunt in hunts]
    assert len({id(copied) for copied in copies}) == 3
    assert sum(len(copied.ran) for copied in copies if isinstance(copied, Copied)) == len(chosen)
    assert [copied.text for copied in copies if isinstance(copied, Copied)] == [SOURCE] * 3


PULSAR = Path("jmsaio/transport/pulsar/a.py")
MIRRORED, NEAR = Path("tests/transport/pulsar/test_a.py"), Path("tests/transport/pulsar/test_near.py")
CONTRACT, FAR = Path("tests/transport/contract/test_b.py"), Path("tests/transport/pulsar/test_far.py")


class AroundPulsar:
    def mirrored(self, module: Path) -> list[Path]:
        return [MIRRORED]

    def others(self, module: Path) -> list[Path]:
        return [NEAR]

    def part(self, module: Path) -> list[Path]:
        return [FAR, NEAR, CONTRACT, MIRRORED]


def test_a_broker_judges_the_transport_to_it_last_and_first_what_every_transport_promises() -> None:
    stages = Hunt(Path(), AroundPulsar(), Copied(), broker=True).stages(PULSAR)
    assert stages[:3] == [
        Stage([MIRRORED], Needs.PYTHON), Stage([NEAR], Needs.PYTHON), Stage([FAR, CONTRACT], Needs.PYTHON),
    ]  # fmt: skip
    assert stages[3:] == [
        Stage([MIRRORED], Needs.BROKER), Stage([CONTRACT], Needs.BROKER), Stage([FAR, NEAR], Needs.BROKER),
    ]  # fmt: skip


def test_no_broker_judges_other_parts_or_a_hunt_without_one() -> None:
    for hunt, module in [
        (Hunt(Path(), AroundPulsar(), Copied(), broker=True), Path("jmsaio/transport/memory/a.py")),
        (Hunt(Path(), AroundPulsar(), Copied()), PULSAR),
    ]:
        assert {stage.needs for stage in hunt.stages(module)} == {Needs.PYTHON}


def test_a_mutant_is_described_with_its_file_and_line(tree: Path, mutant: Mutant) -> None:
    assert mutant.described(tree).startswith("jmsaio/rules/a.py:2 (")
    assert "return a < b or a + 1 > b * 2\n -> " in mutant.described(tree)
