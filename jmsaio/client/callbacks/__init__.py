"""Runs the application's callbacks: message listeners, completion listeners and the exception listener."""
