"""Receiving from Pulsar: receivers and readers over native consumers."""
