"""What several tests of the optimiser need around them."""

import signal

import pytest


@pytest.fixture
def python_s_own_interrupt():
    """Ctrl-C as Python handles it: what a shell starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
