"""Optuna: a sampler that learns from crashes, and studies in any of Optuna's storages.

May import optimizer and below, and Optuna.

All state is in the storage, so that any number of processes on any number of machines can work on one study, each with
its own `CrashSampler`. What is stored where:

| where | key | what |
|---|---|---|
| trial, user attribute | `measured:NAME` | a measurement (`measure`) |
| | `crashbo:state` | "crash", "stopped", "void", "success" of one without a cost, or "error": another FAIL |
| | `crashbo:reason` | why it failed, or the note of a success, text |
| | `crashbo:blame` | names of the constraints that a crash violated, as told |
| | `crashbo:censored` | names of the measurements that were cut off |
| | `crashbo:reached` | of a crash, the last readings before it, by constraint |
| | `crashbo:rises` | of these, the largest rise from one reading to the next |
| | `crashbo:unmeasured` | of a success, goals that were not measured: Optuna's value of them is infinitely bad |
| | `crashbo:p_safe` | P(safe) when it was proposed |
| trial, system attribute | `crashbo:proposal` | the whole proposal, its origin, whether its risk was admissible |
| | `crashbo:lease` | seconds since 1970 until which its worker is assumed to be alive |
| | `crashbo:lease:steady` | the same for this machine until it is started again, whatever its clock is set to |
| | `crashbo:heartbeat` | that Optuna watches over its worker's heartbeat |
| | `crashbo:death` | of a trial that `void_expired` closed, that its worker died |
| | `crashbo:request`, `crashbo:told` | ids of the service's requests that asked for it, and that told it |
| | `crashbo:asked` | the lease that such a request wanted, in seconds |
| | `crashbo:who`, `crashbo:order` | who told it, and a number that grows with everything that is told |
| study, user attribute | `crashbo:settings` | arguments of `declare`: space, constraints, risk, noise, lease ... |
| | `crashbo:corrected:NUMBER` | correction of a finished trial; Optuna's own record cannot be changed |
| | `crashbo:compared:ID` | a comparison of two trials: which was better, when, by whom, and whether it was taken back |
| | `crashbo:halted` | that no trial is handed out at the bench: since when, by whom and why |
| study, system attribute | `crashbo:memory:MODELS` | hyperparameters of the last fit, with which other workers begin |
| study, system attribute | `crashbo:fitting:MODELS` | who fits them now, to how many trials, until when at most |

How a stored trial is read (`records`):

| Optuna | crashbo |
|---|---|
| COMPLETE, or PRUNED with a value | success; if the value is infinite, as any other FAIL |
| FAIL marked "crash": `raise Crash`, `tell(crash=...)`, `study.tell(trial, state=FAIL)` | crash |
| FAIL marked "stopped": `raise Stopped`, `tell(stopped=...)` | stopped |
| FAIL marked "success": `tell(success=True)`, which Optuna has no state for | success, without a cost |
| FAIL marked "void": `raise Void`, `tell(void=...)`, an exception that ends the study | void |
| RUNNING past its lease, or FAIL with a heartbeat and no mark: a death | void; again at its setting: `on_death` |
| any other FAIL: an exception that was caught, no cost, another sampler's | crash; void with `on_fail="void"` |
| RUNNING or WAITING | pending |
"""

from crashbo.extras import Absent

try:
    import optuna  # noqa: F401
except ModuleNotFoundError as error:
    raise Absent("crashbo.integrations.optuna", error.name, "optuna") from error

from crashbo.integrations.optuna.insight import Insight, insight
from crashbo.integrations.optuna.sampler import CrashSampler
from crashbo.integrations.optuna.settings import Settings, declare, declared
from crashbo.integrations.optuna.spaces import distributions_of
from crashbo.integrations.optuna.stored import records
from crashbo.integrations.optuna.telling import ask, measure, prefer, renew, tell, void_expired

__all__ = [
    "CrashSampler",
    "Insight",
    "Settings",
    "ask",
    "declare",
    "declared",
    "distributions_of",
    "insight",
    "measure",
    "prefer",
    "records",
    "renew",
    "tell",
    "void_expired",
]
