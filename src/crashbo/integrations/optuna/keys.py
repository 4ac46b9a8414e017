"""Keys of the attributes in Optuna's storage; the package's docstring says what each holds.

Imports nothing.
"""

MEASURED = "measured:"
STATE, REASON, BLAME = "crashbo:state", "crashbo:reason", "crashbo:blame"
CENSORED, P_SAFE = "crashbo:censored", "crashbo:p_safe"
REACHED, UNMEASURED = "crashbo:reached", "crashbo:unmeasured"
RISES = "crashbo:rises"
RAN, CONTEXT = "crashbo:ran", "crashbo:context"
PROPOSAL, LEASE = "crashbo:proposal", "crashbo:lease"
HEARTBEAT, DEATH = "crashbo:heartbeat", "crashbo:death"
STEADY = "crashbo:lease:steady"  # the end of a lease that no change of the clock moves
REQUEST, TOLD = "crashbo:request", "crashbo:told"  # ids of the requests that asked for a trial, and that told it
ASKED = "crashbo:asked"  # what else such a request said
WHO, ORDER = "crashbo:who", "crashbo:order"  # who told a trial, and its place in the order of all that was told
SETTINGS, CORRECTED = "crashbo:settings", "crashbo:corrected:"
HALTED = "crashbo:halted"
MEMORY, FITTING = "crashbo:memory:", "crashbo:fitting:"  # and a digest of what the models are of
COMPARED = "crashbo:compared:"
