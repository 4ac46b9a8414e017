"""The robot Solo8 as a MuJoCo model. May import the public API, from the modules that define it.

Masses, inertias and lengths are those of the robot's published description (solo.urdf of example-robot-data, from the
Open Dynamic Robot Initiative). Shapes are primitives, used for contact with the ground and for rendering, and have no
mass. Metres, kilograms, seconds, radians; x points forward, y to the left, z up.
"""

from typing import Any

import numpy as np

from crashbo.problems.problem import Array
from crashbo.problems.solo8.engine import mujoco
from crashbo.problems.solo8.plan import FOOT_RADIUS, LINK

LEGS = ("FL", "FR", "HL", "HR")
TIMESTEP = 0.0005
ROTOR_INERTIA, GEAR = (
    4.5e-6,
    9.0,
)  # of the rotor, and the ratio: the joint sees the inertia times the ratio squared
COULOMB, VISCOUS = 0.08, 0.004  # Nm, Nms/rad at the joint: assumed, since not published

_HIP_X, _HIP_Y, _KNEE_Y, _FOOT_Y = 0.19, 0.1046, 0.03745, 0.008
_BASE_BOX = (0.20, 0.055, 0.03)  # half sizes
_GROUND, _ROBOT = 1, 2  # collision groups: the robot's parts collide with the ground, not with each other
# A contact settles within 5 ms: with MuJoCo's default of 20 ms the feet would sink in by 2 cm on landing.
_STIFF, _HARD = (0.005, 1.0), (0.95, 0.99, 0.001, 0.5, 2.0)
_FRICTION = (1.0, 0.005, 0.0001)  # between feet and ground: sliding, torsional, rolling
_GREY, _DARK, _FOOT = (0.72, 0.74, 0.78, 1.0), (0.25, 0.27, 0.30, 1.0), (0.84, 0.37, 0.0, 1.0)


def build(com_x: float = 0.0) -> Any:
    """The compiled model; joints in the order of `LEGS`, hip before knee.

    Args:
        com_x: offset of the base's centre of mass to the front.
    """
    spec = mujoco.MjSpec()
    spec.option.timestep = TIMESTEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    _set_scene(spec)
    world = spec.worldbody
    base = world.add_body(name="base", pos=[0.0, 0.0, 0.25])
    base.add_freejoint(name="root")
    _weigh(base, 1.43315091, [com_x, 0.0, 0.0], [0.00578574, 0.01938108, 0.02476124])
    _shape(base, "trunk", mujoco.mjtGeom.mjGEOM_BOX, _BASE_BOX, rgba=_GREY)
    for leg in LEGS:
        _add_leg(base, leg)
    return spec.compile()


def _set_scene(spec: Any) -> None:
    """Ground, sky and light."""
    look = spec.visual
    look.headlight.ambient, look.headlight.diffuse, look.headlight.specular = [0.5] * 3, [0.4] * 3, [0.0] * 3
    builtin, sky, flat = mujoco.mjtBuiltin, mujoco.mjtTexture.mjTEXTURE_SKYBOX, mujoco.mjtTexture.mjTEXTURE_2D
    spec.add_texture(
        name="sky",
        type=sky,
        builtin=builtin.mjBUILTIN_GRADIENT,
        rgb1=[1, 1, 1],
        rgb2=[0.8, 0.86, 0.92],
        width=64,
        height=384,
    )
    spec.add_texture(
        name="tiles",
        type=flat,
        builtin=builtin.mjBUILTIN_CHECKER,
        rgb1=[0.82] * 3,
        rgb2=[0.74] * 3,
        width=128,
        height=128,
    )
    floor = spec.add_material(name="floor", texrepeat=[10, 10], texuniform=False)
    floor.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "tiles"
    spec.worldbody.add_light(pos=[0.6, -1.0, 2.5], dir=[-0.2, 0.3, -1.0], diffuse=[0.35] * 3, specular=[0.1] * 3)
    spec.worldbody.add_geom(
        name="ground",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[6, 6, 0.1],
        contype=_GROUND,
        conaffinity=_ROBOT,
        friction=_FRICTION,
        solref=_STIFF,
        solimp=_HARD,
        priority=1,
        material="floor",
    )


def _add_leg(base: Any, leg: str) -> None:
    x, y = (_HIP_X if leg[0] == "F" else -_HIP_X), (1.0 if leg[1] == "L" else -1.0)
    upper = base.add_body(name=f"{leg}_upper", pos=[x, y * _HIP_Y, 0.0])
    _add_joint(upper, f"{leg}_hip")
    _weigh(upper, 0.14853845, [0.0, y * 0.01935853, -0.078707], [0.00041107, 0.00041193, 0.00003024])
    knee = [0.0, y * _KNEE_Y, -LINK]
    capsule = mujoco.mjtGeom.mjGEOM_CAPSULE
    _shape(upper, f"{leg}_thigh", capsule, [0.014, 0, 0], fromto=[0.0, y * 0.02, 0.0, *knee], rgba=_DARK)
    lower = upper.add_body(name=f"{leg}_lower", pos=knee)
    _add_joint(lower, f"{leg}_knee")
    _weigh(lower, 0.03070001, [0.0, y * 0.00787644, -0.08928215], [0.00012024, 0.00012029, 0.00000216])
    ankle = [0.0, y * _FOOT_Y, -LINK]
    _shape(lower, f"{leg}_shin", capsule, [0.008, 0, 0], touches=False, fromto=[0.0, 0.0, 0.0, *ankle], rgba=_DARK)
    foot = lower.add_body(name=f"{leg}_foot", pos=ankle)
    _weigh(foot, 0.00693606, [0.0, 0.0, 0.00035767], [0.00000057, 0.00000084, 0.00000053])
    _shape(foot, f"{leg}_sole", mujoco.mjtGeom.mjGEOM_SPHERE, [FOOT_RADIUS, 0, 0], rgba=_FOOT)


def _add_joint(body: Any, name: str) -> None:
    body.add_joint(
        name=name,
        type=mujoco.mjtJoint.mjJNT_HINGE,
        axis=[0, 1, 0],
        armature=ROTOR_INERTIA * GEAR**2,
        frictionloss=COULOMB,
        damping=VISCOUS,
    )


def _weigh(body: Any, mass: float, com: list[float], inertia: list[float]) -> None:
    body.explicitinertial = True
    body.mass, body.ipos, body.inertia = mass, com, inertia


def _shape(body: Any, name: str, kind: Any, size: Any, *, touches: bool = True, **look: Any) -> None:
    groups = {"contype": _ROBOT, "conaffinity": _GROUND} if touches else {"contype": 0, "conaffinity": 0}
    body.add_geom(name=name, type=kind, size=list(size), mass=0.0, **groups, **look)


def skeleton(pose: Array) -> Array:
    """Hips, knees and feet of a pose (15,) in space: (4 legs, 3 points, 3)."""
    turned = _rotation(pose[3:7])
    points = np.zeros((4, 3, 3))
    for leg, name in enumerate(LEGS):
        hip, knee = pose[7 + 2 * leg : 9 + 2 * leg]
        x, y = (_HIP_X if name[0] == "F" else -_HIP_X), (1.0 if name[1] == "L" else -1.0)
        at = np.array([x, y * _HIP_Y, 0.0])
        points[leg, 0] = at
        for joint, (angle, side) in enumerate(((hip, _KNEE_Y), (hip + knee, _FOOT_Y)), start=1):
            at = at + np.array([-LINK * np.sin(angle), y * side, -LINK * np.cos(angle)])
            points[leg, joint] = at
    return np.asarray(pose[:3] + points @ turned.T)


def _rotation(quaternion: Array) -> Array:
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
