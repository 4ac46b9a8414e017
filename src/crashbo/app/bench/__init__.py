"""The bench: one study in a store, and everything that is done to it. Command line and service share it.

May import every other layer. Plain Python: no web framework, no terminal.

| file | holds |
|---|---|
| definition | a study as a person writes it down: parameters, constraints, risk, labels, rules of `run` |
| store | new studies and old ones |
| bench | ask, tell, void, fix, undo, best, trials: the service itself |
| corrections | what finished trials should have said, with all that was said before |
| turnstile | a lock that is first come, first served |
| table | trials as CSV, in and out |
| looking | what the models make of a study, gathered for pages, reports and terminals |
| mind | worker processes that fit models, so that nobody waits for them |
| runner | a command a trial: exit codes, timeouts and rubbish become what the study says |
"""

from crashbo.app.bench.bench import Bench, Conflict, Missing, Told
from crashbo.app.bench.definition import Definition, RunRules

__all__ = ["Bench", "Conflict", "Definition", "Missing", "RunRules", "Told"]
