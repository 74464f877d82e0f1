"""Validated options, by Starlight's or jmsaio's names, from a URL, a map, a file or keyword arguments."""

from jmsaio.config.configuration import Configuration
from jmsaio.config.connect_options import ConnectOptions, FactoryOptions
from jmsaio.config.loading import load, without_effect
from jmsaio.config.sections import Backoff, ConsumerConfig, DeadLetterPolicy, ProducerConfig

__all__ = [
    "Backoff",
    "Configuration",
    "ConnectOptions",
    "ConsumerConfig",
    "DeadLetterPolicy",
    "FactoryOptions",
    "ProducerConfig",
    "load",
    "without_effect",
]
