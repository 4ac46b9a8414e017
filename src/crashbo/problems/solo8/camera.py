"""Pictures of poses, rendered off screen. May import the public API, from the modules that define it.

A graphics library may be missing, or broken so that it kills the process; and once MuJoCo is imported it cannot switch
to another one. So rendering is done by a separate process: this module, run as a program.

    CRASHBO_CAMERA_GL=egl python -m crashbo.problems.solo8.camera POSES.npy FRAMES.npy WIDTH HEIGHT

A library named in `MUJOCO_GL` is tried first; `disable` tries none.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crashbo.problems.problem import Array
from crashbo.problems.solo8 import robot
from crashbo.problems.solo8.engine import LIBRARY, mujoco

Frames = NDArray[np.uint8]  # (n, height, width, 3)

LIBRARIES = ("egl", "osmesa") if sys.platform.startswith("linux") else ("",)  # elsewhere the system default
_NAMED = ("egl", "osmesa", "glfw", "glx", "cgl", "wgl")  # as MuJoCo knows them
_OFF = ("disable", "disabled", "off", "false", "0")
_PATIENCE = 120.0  # s


def libraries() -> tuple[str, ...]:
    """Graphics libraries to try, in this order: the user's choice, then the others."""
    said = os.environ.get("MUJOCO_GL", "").strip().lower()
    if said in _OFF:
        return ()
    first = (said,) if said in _NAMED else ()
    return first + tuple(library for library in LIBRARIES if library not in first)


def film(poses: Array, width: int = 360, height: int = 300) -> Frames | None:
    """Frames of poses (n, 15), or None if no graphics library works."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "poses.npy"), Path(folder, "frames.npy")
        np.save(source, poses)
        command = [sys.executable, "-m", __name__, str(source), str(target), str(width), str(height)]
        for library in libraries():
            environment = os.environ | {LIBRARY: library}
            try:
                done = subprocess.run(command, env=environment, capture_output=True, timeout=_PATIENCE, check=False)
            except (OSError, subprocess.TimeoutExpired):
                continue
            if done.returncode == 0 and target.exists():
                frames: Frames = np.load(target)
                return frames
    return None


def render(poses: Array, width: int, height: int) -> Frames:
    """Frames of poses, rendered in this process."""
    model = robot.build()
    data = mujoco.MjData(model)
    camera = mujoco.MjvCamera()
    camera.lookat[:], camera.distance, camera.azimuth, camera.elevation = (0.0, 0.0, 0.40), 1.45, 115.0, -8.0
    with mujoco.Renderer(model, height, width) as renderer:
        frames = []
        for pose in poses:
            data.qpos[:] = pose
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, camera)
            frames.append(renderer.render().copy())
    return np.array(frames, dtype=np.uint8)


def main(source: str, target: str, width: str, height: str) -> None:
    """Render a file of poses to a file of frames."""
    np.save(target, render(np.load(source), int(width), int(height)))


if __name__ == "__main__":
    main(*sys.argv[1:])
