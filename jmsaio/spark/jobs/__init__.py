"""Jobs on top of the data source, each of them a command of ``jmsaio spark``."""
