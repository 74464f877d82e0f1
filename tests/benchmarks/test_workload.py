import json

import pytest

from benchmarks.workload import Task, Workload


def test_the_documented_workload() -> None:
    work = Workload()
    assert (work.messages, len(work.text), work.window) == (40_000, 100, 5_000)
    assert (work.batch_messages, work.batch_delay, work.workers) == (1_000, 0.001, 1_000)
    assert (work.consumers, work.sessions) == (1_000, 10)


def test_smoke_is_much_smaller() -> None:
    assert Workload.smoke().messages * 10 <= Workload().messages
    assert Workload.smoke().characters == Workload().characters


def test_check_sum_is_the_sum_of_all_numbers() -> None:
    work = Workload(messages=1_234)
    assert work.check_sum() == sum(range(1_234))


def test_a_task_survives_json() -> None:
    task = Task("module:function", "memory:", "queue", "uvloop", Workload(messages=7), {"class_path": "a:b"})
    assert Task.from_json(json.loads(json.dumps(task.to_json()))) == task


def test_other_json_is_refused() -> None:
    with pytest.raises(TypeError):
        Task.from_json({"target": "x", "workload": {"amount": 1}})
