"""The rows of the layer run, send and receive what they say, and need no broker."""

from __future__ import annotations

import pytest

from benchmarks.catalog import all_scenarios
from benchmarks.child import run_task
from benchmarks.goals import GOALS
from benchmarks.layer.catalog import layer_scenarios
from benchmarks.layer.peer import ENTRIES, fill, split
from benchmarks.scenario import Scenario
from benchmarks.workload import AMOUNT, Task, Workload


@pytest.mark.parametrize("scenario", layer_scenarios(), ids=lambda scenario: scenario.name)
def test_each_row_measures_what_it_costs(scenario: Scenario) -> None:
    metrics = run_task(Task(scenario.target, scenario.url, "layer", workload=Workload.smoke()))
    assert metrics["cpu_us"] > 0 and metrics["per_second"] > 0


def test_the_rows_need_no_broker() -> None:
    names = {scenario.name for scenario in all_scenarios(None, "", None)}
    assert {goal.scenario for goal in GOALS if goal.scenario.startswith("layer.")} <= names


def test_an_entry_is_split_into_what_it_was_made_of() -> None:
    work = Workload(messages=1_500)
    fill(work)
    records = [record for number, entry in enumerate(ENTRIES) for record in split(entry, number)]
    assert [record.get(AMOUNT) for record in records] == [str(number) for number in range(work.messages)]
    for record in (records[0], records[-1]):
        assert record.payload.decode() == work.text
        assert {name: record.get(name) for name in record.properties} == record.properties
        assert record.get("region_jsmtype") is None
    assert records[-1].message_id == (1, 1, -1, 499)
