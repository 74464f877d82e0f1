"""Hypothesis without time limits: the tests run beside others on crowded machines."""

from hypothesis import HealthCheck, settings

settings.register_profile("crowded", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("crowded")
