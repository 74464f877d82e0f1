"""The broker and its parts offer what the parts below them ask for."""

from __future__ import annotations

from jmsaio.transport.memory.broker.broker import Broker
from jmsaio.transport.memory.broker.consumer import Dispatcher
from jmsaio.transport.memory.broker.ports import LogListener, Services
from tests.transport.memory.bench import Bench


def test_a_partition_gets_its_services_from_the_broker_it_lies_in(bench: Bench) -> None:
    services: Services = bench.broker
    assert bench.log.broker is services
    assert isinstance(bench.broker, Broker)


def test_a_subscription_listens_to_its_partition_and_uses_the_brokers_services(bench: Bench) -> None:
    subscription = bench.subscribe()
    listener: LogListener = subscription
    dispatcher: Dispatcher = subscription
    assert bench.log.listeners == [listener]
    assert dispatcher.services is bench.broker
