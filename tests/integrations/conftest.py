import optuna
import pytest


@pytest.fixture(autouse=True)
def _quiet():
    """Optuna reports every failed trial; here they are meant to fail."""
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
