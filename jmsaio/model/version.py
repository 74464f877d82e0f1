"""The version of jmsaio, which the build reads, too."""

__version__ = "0.2.0"
