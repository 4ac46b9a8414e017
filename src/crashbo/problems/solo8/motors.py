"""The motors: what current a torque takes, what torque that gives, and what the supply allows.

May import the public API, from the rooms that define it. Per joint, in A, V, Nm and rad/s.

Published for the robot: torque constant 0.025 Nm/A, gear 9, 24 V, and joint torques of 2.5 Nm at 12 A and about
2.7 Nm at 15 A: less than the constant promises, because iron saturates. The drives know the constant alone, so they ask
for a current in proportion to the torque, and past about 13 A the robot pays for torque that it does not get. The form
of the droop is ours, its two numbers are those for which it meets both published torques. Assumed: a winding of 0.6 ohm
and drives that give up to 24 A.
"""

import numpy as np
from numpy.typing import NDArray

from crashbo.problems.solo8.robot import GEAR

Array = NDArray[np.float64]

TORQUE_CONSTANT = 0.025  # Nm/A at the rotor; also V s/rad
RESISTANCE = 0.6
SUPPLY = 24.0
LIMIT = 24.0  # A
_KNEE, _SHARPNESS = 12.25, 8  # A where the torque stops growing, and how suddenly

_CONSTANT = GEAR * TORQUE_CONSTANT  # Nm/A, and V s/rad, at the joint
_STALL, _BACK = SUPPLY / RESISTANCE, _CONSTANT / RESISTANCE


def currents(torques: Array, speeds: Array) -> Array:
    """Currents that the drives put through when asked for torques at joint speeds: within both limits."""
    back = speeds * _BACK
    lowest, highest = np.maximum(-LIMIT, -_STALL - back), np.minimum(LIMIT, _STALL - back)
    return np.asarray(np.minimum(np.maximum(torques / _CONSTANT, lowest), highest))


def torques(currents: Array) -> Array:
    """Joint torques that currents give."""
    return np.asarray(_CONSTANT * currents / (1.0 + (currents / _KNEE) ** _SHARPNESS) ** (1.0 / _SHARPNESS))


def voltages(currents: Array, speeds: Array) -> Array:
    """What the supply must give for currents at joint speeds."""
    return RESISTANCE * currents + _CONSTANT * speeds
