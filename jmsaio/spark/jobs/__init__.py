"""Jobs on top of the data source: archive, replay, dead letters, clean-up, check.

Each is a function and a command of ``jmsaio spark``.
"""
