"""Receivers and readers, and their consumers."""
