"""Runs the functions that an application hands over: listeners, completion listeners, the exception listener."""
