"""The bench: one study in a store, and everything that is done to it. Command line and service share it.

May import every other layer. Plain Python: no web framework, no terminal.

| file | holds |
|---|---|
| definition | a study as a person writes it down: parameters, constraints, risk, labels, rules of `run` |
| store | new studies and old ones |
| bench | ask, tell, void, fix, undo, best, trials: the service itself |
| fair_lock | a lock that is first come, first served |
| table | trials as CSV, in and out |
| overview | what the models make of a study, gathered for pages, reports and terminals |
| workers | processes that fit models, so that nobody waits for them |
| runner | a command per trial: exit codes, timeouts and rubbish become what the study says |
"""

from crashbo.app.bench.bench import Bench, Conflict, Missing
from crashbo.app.bench.definition import Definition, RunRules
from crashbo.optimizer.told import Told

__all__ = ["Bench", "Conflict", "Definition", "Missing", "RunRules", "Told"]
