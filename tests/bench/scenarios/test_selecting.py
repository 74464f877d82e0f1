import pytest

from jmsaio.bench.scenarios import selecting
from jmsaio.bench.workload import Task


def test_half_of_the_records_match(task: Task) -> None:
    assert selecting.three_terms(task)["per_second"] > 0


def test_a_wrong_answer_is_told(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selecting, "SELECTOR", "amount > 998")
    with pytest.raises(RuntimeError, match="2 of 2000 matched, not 1000"):
        selecting.three_terms(task)
