"""Reads and writes values with a schema of Pulsar's registry."""
