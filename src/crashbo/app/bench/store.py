"""Creates and loads studies in a store. May import every other layer."""

import os
import uuid

from crashbo.app.bench.definition import Definition
from crashbo.integrations.optuna import declare, studies
from crashbo.integrations.optuna.ledger import Ledger

DEFAULT = "crashbo.db"
EXTRAS, ID = "crashbo:bench", "crashbo:id"


def create(where: str, definition: Definition) -> Ledger:
    """Create a study in a store, with its start points queued."""
    study = definition.study
    ledger = Ledger(studies.create_study(where, definition.name, study.direction, study.objectives))
    ledger.set_attr(EXTRAS, definition.extras())
    ledger.set_attr(ID, uuid.uuid4().hex[:12])
    declare(
        ledger.study,
        space=definition.space,
        lease=definition.lease,
        on_death=definition.run.on_death,
        # The storage has the directions, and the extras have the units.
        **{name: v for name, v in definition.options.items() if name not in ("direction", "objectives", "units")},
    )
    for params in definition.start:
        ledger.queue(params)
    return ledger


def load(where: str, name: str | None = None) -> Ledger:
    """Load a study of a store; without a name, the only one."""
    return Ledger(studies.load_study(where, name))


def default_store() -> str:
    """The default store."""
    return os.environ.get("CRASHBO_STORE", DEFAULT)
