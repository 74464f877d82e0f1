"""pulsar-client bridged to the event loop: callbacks, results, its log, its configuration objects."""
