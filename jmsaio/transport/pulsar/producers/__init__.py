"""Sending to Pulsar: one sender over a native producer for each partition."""
