"""The bench: one study in a store, with all operations on it. Command line and service share it.

May import every other layer. Plain Python: no web framework, no terminal.

| file | holds |
|---|---|
| definition | a study as a user writes it: parameters, constraints, risk, labels, rules of `run` |
| store | creates, lists and loads studies |
| checks | what is refused, in one sentence each |
| bench | ask, tell, void, fix, undo, best, trials: the service itself |
| fair_lock | a lock that is first come, first served |
| table | import and export of trials as CSV; the study, to be shown |
| workers | processes that fit models in the background |
| runner | runs a command per trial, and turns exit codes, timeouts and invalid output into outcomes |
"""

from crashbo.app.bench.bench import Bench
from crashbo.app.bench.checks import Beyond, Conflict, Missing
from crashbo.app.bench.definition import Definition, RunRules
from crashbo.optimizer.told import Told

__all__ = ["Bench", "Beyond", "Conflict", "Definition", "Missing", "RunRules", "Told"]
