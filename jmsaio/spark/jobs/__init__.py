"""Jobs around the data source: archive, verify, replay, check. Each is a function and a command of ``jmsaio spark``."""
