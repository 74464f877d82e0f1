"""Sending to Pulsar: senders with one native producer per partition."""
