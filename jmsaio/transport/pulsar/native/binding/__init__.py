"""Bridge between pulsar-client and the event loop: callbacks, results, its log, its configuration objects."""
