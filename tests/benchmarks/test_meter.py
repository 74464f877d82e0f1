import pytest

from benchmarks.meter import Meter, latency_metrics


def test_a_meter_counts_time_and_cpu() -> None:
    with Meter() as meter:
        sum(range(200_000))
    metrics = meter.metrics(10)
    assert metrics["per_second"] == pytest.approx(10 / meter.seconds)
    assert metrics["wall_us"] == pytest.approx(meter.seconds / 10 * 1e6)
    assert metrics["cpu_us"] == pytest.approx(meter.cpu_seconds / 10 * 1e6)
    assert metrics["switches"] >= 0


def test_start_forgets_what_was_before() -> None:
    meter = Meter()
    meter.stop()
    meter.start()
    assert (meter.seconds, meter.cpu_seconds) == (0.0, 0.0)


def test_latency_is_shown_in_milliseconds() -> None:
    meter = Meter()
    meter.seconds, meter.cpu_seconds = 2.0, 1.0
    metrics = latency_metrics([0.004, 0.001, 0.002, 0.003], [0.0, 0.001], meter)
    assert metrics["p50_ms"] == pytest.approx(3.0)
    assert metrics["p99_ms"] == metrics["max_ms"] == pytest.approx(4.0)
    assert metrics["late_p99_ms"] == pytest.approx(1.0)
    assert metrics["cpu_percent"] == pytest.approx(50.0)
    assert metrics["cpu_us"] == pytest.approx(250_000.0)
