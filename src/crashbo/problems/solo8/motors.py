"""The motors: the current for a torque, the torque that it gives, and the limits of the supply.

May import the public API, from the modules that define it. Per joint, in A, V, Nm and rad/s.

Published for the robot: torque constant 0.025 Nm/A, gear ratio 9, 24 V, and joint torques of 2.5 Nm at 12 A and about
2.7 Nm at 15 A: less than the constant predicts, because the iron saturates. The drives only know the constant, so the
current is proportional to the torque that is asked for, and above about 13 A more current gives hardly more torque. The
form of the saturation is ours; its two parameters are fitted to both published torques. Assumed: a winding resistance
of 0.6 ohm and drives that supply up to 24 A.
"""

import numpy as np

from crashbo.problems.problem import Array
from crashbo.problems.solo8.robot import GEAR

TORQUE_CONSTANT = 0.025  # Nm/A at the rotor; also V s/rad
RESISTANCE = 0.6
SUPPLY = 24.0
LIMIT = 24.0  # A
_KNEE, _SHARPNESS = 12.25, 8  # A at which the torque saturates, and how sharply

_CONSTANT = GEAR * TORQUE_CONSTANT  # Nm/A, and V s/rad, at the joint
_STALL, _BACK = SUPPLY / RESISTANCE, _CONSTANT / RESISTANCE


def currents(torques: Array, speeds: Array) -> Array:
    """Currents that the drives supply when asked for torques at joint speeds, within both limits."""
    back = speeds * _BACK
    lowest, highest = np.maximum(-LIMIT, -_STALL - back), np.minimum(LIMIT, _STALL - back)
    return np.asarray(np.minimum(np.maximum(torques / _CONSTANT, lowest), highest))


def torques(currents: Array) -> Array:
    """Joint torques produced by currents."""
    return np.asarray(_CONSTANT * currents / (1.0 + (currents / _KNEE) ** _SHARPNESS) ** (1.0 / _SHARPNESS))


def voltages(currents: Array, speeds: Array) -> Array:
    """Voltages needed for currents at joint speeds."""
    return RESISTANCE * currents + _CONSTANT * speeds
