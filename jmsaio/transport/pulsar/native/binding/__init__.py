"""Bridge between pulsar-client and the event loop: callbacks, results, its log, its configuration objects."""

#: Versions of pulsar-client whose message ids ``batch_acker`` can read.
SUPPORTED = ">=3.13,<4"
