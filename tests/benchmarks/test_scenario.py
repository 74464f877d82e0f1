from benchmarks.scenario import METRICS, Block, Goal


def test_every_group_has_a_main_figure() -> None:
    assert set(METRICS) == set(Block)


def test_a_lower_bound_is_met_from_above() -> None:
    goal = Goal("send.jmsaio", 2.0, "send.raw")
    assert goal.is_met(2.0)
    assert not goal.is_met(1.99)


def test_an_upper_bound_is_met_from_below() -> None:
    goal = Goal("idle.consumers", 20.0, at_most=True)
    assert goal.is_met(19.0)
    assert not goal.is_met(20.1)
