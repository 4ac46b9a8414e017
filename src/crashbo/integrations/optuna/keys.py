"""Keys of the attributes in Optuna's storage; the package's docstring says what each holds.

Imports nothing.
"""

MEASURED = "measured:"
STATE, REASON, BLAME = "crashbo:state", "crashbo:reason", "crashbo:blame"
CENSORED, P_SAFE = "crashbo:censored", "crashbo:p_safe"
PROPOSAL, LEASE = "crashbo:proposal", "crashbo:lease"
HEARTBEAT, DEATH = "crashbo:heartbeat", "crashbo:death"
REQUEST, TOLD = "crashbo:request", "crashbo:told"  # ids of the requests that asked for a trial, and that told it
SETTINGS, CORRECTED = "crashbo:settings", "crashbo:corrected:"
