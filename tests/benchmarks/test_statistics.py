import pytest

from benchmarks.statistics import Spread, paired_ratios, percentile, spread


def test_spread_has_median_and_extremes() -> None:
    assert spread([5.0, 1.0, 3.0]) == Spread(3.0, 1.0, 5.0, 3)
    assert spread([1.0, 2.0]) == Spread(1.5, 1.0, 2.0, 2)


def test_spread_of_nothing_is_none() -> None:
    assert spread([]) is None


def test_percentile_takes_the_nearest_rank() -> None:
    values = [float(number) for number in range(100)]
    assert percentile(values, 0.0) == 0.0
    assert percentile(values, 0.5) == 50.0
    assert percentile(values, 0.99) == 99.0
    assert percentile(values, 1.0) == 99.0


@pytest.mark.parametrize(("values", "part"), [([], 0.5), ([1.0], -0.1), ([1.0], 1.1)])
def test_a_percentile_refuses_no_values_and_parts_outside_of_0_to_1(values: list[float], part: float) -> None:
    with pytest.raises(ValueError, match=r"no values|part"):
        percentile(values, part)


def test_ratios_pair_the_same_round_only() -> None:
    assert paired_ratios({0: 10.0, 1: 30.0, 2: 5.0}, {0: 5.0, 1: 10.0, 3: 1.0}) == [2.0, 3.0]


def test_a_slow_round_does_not_move_a_paired_ratio() -> None:
    assert paired_ratios({0: 100.0, 1: 10.0}, {0: 50.0, 1: 5.0}) == [2.0, 2.0]


def test_a_reference_of_zero_has_no_ratio() -> None:
    assert paired_ratios({0: 1.0, 1: 4.0}, {0: 0.0, 1: 2.0}) == [2.0]
