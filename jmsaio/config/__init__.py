"""Every option in one place: Starlight's names and our own, from a URL, a map, a file or keyword options, validated."""

from jmsaio.config.configuration import Configuration
from jmsaio.config.loading import load
from jmsaio.config.streams import Backoff, ConsumerConfig, DeadLetterPolicy, ProducerConfig

__all__ = ["Backoff", "Configuration", "ConsumerConfig", "DeadLetterPolicy", "ProducerConfig", "load"]
