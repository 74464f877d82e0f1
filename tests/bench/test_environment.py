import platform

from jmsaio.bench.environment import environment, load_average, yardstick


def test_environment_names_versions_and_machine() -> None:
    facts = environment()
    assert platform.python_version() in facts["python"]
    assert {"jmsaio", "pulsar-client", "uvloop", "system", "processor", "cores"} <= facts.keys()
    assert facts["pulsar-client"] != "not installed"


def test_load_average_is_a_number() -> None:
    assert load_average() >= 0.0


def test_the_yardstick_takes_time() -> None:
    assert yardstick() > 0.0
