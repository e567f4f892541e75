"""Profiles of the property tests: 'fast' unless HYPOTHESIS_PROFILE says 'long', or 'few' as the mutation check does."""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, Phase, settings

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
settings.register_profile(
    "fast", max_examples=50, deadline=None, suppress_health_check=_SLOW, derandomize=True
)
settings.register_profile("long", max_examples=1000, deadline=None, suppress_health_check=_SLOW)
settings.register_profile(
    "few",
    max_examples=10,
    deadline=None,
    suppress_health_check=_SLOW,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# A shell starts what runs in its background with Ctrl-C ignored, and its children with it; the tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)
