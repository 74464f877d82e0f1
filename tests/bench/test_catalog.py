from benchmarks.catalog import transaction_scenarios
from benchmarks.layer.catalog import layer_scenarios
from benchmarks.spark.catalog import spark_scenarios
from jmsaio.bench.catalog import GOALS, REFERENCES, embedded_scenarios, own_scenarios
from jmsaio.bench.child import find_target
from jmsaio.bench.scenario import Block

URL = "pulsar://broker:6650"


def test_names_are_unique() -> None:
    names = [scenario.name for scenario in own_scenarios(URL)]
    assert len(names) == len(set(names))


def test_every_target_exists() -> None:
    for scenario in own_scenarios(URL):
        assert callable(find_target(scenario.target))
        if scenario.prepare is not None:
            assert callable(find_target(scenario.prepare))


def test_without_a_broker_only_embedded_rows() -> None:
    assert own_scenarios(None) == own_scenarios("memory:") == embedded_scenarios()
    assert {scenario.url for scenario in own_scenarios(None)} == {"memory:"}


def test_with_a_broker_its_rows_come_first() -> None:
    assert own_scenarios(URL)[0].url == URL


def test_every_group_has_references() -> None:
    assert set(REFERENCES) == set(Block)


def test_goals_speak_of_rows_and_references_that_exist() -> None:
    rows = [
        *own_scenarios(URL),
        *layer_scenarios(),
        *spark_scenarios(URL, URL),
        *transaction_scenarios("wire", "", URL),
    ]
    by_name = {scenario.name: scenario for scenario in rows}
    for goal in GOALS:
        scenario = by_name[goal.scenario]
        assert goal.reference is None or goal.reference in (*REFERENCES[scenario.group], *scenario.references)
