"""Maintenance of a broker: each task is one function and one command."""
