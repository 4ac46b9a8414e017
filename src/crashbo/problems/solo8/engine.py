"""The only import of MuJoCo (extra `robot`). May import the public API, from the modules that define it.

MuJoCo loads a graphics library when it is imported, and the import fails if that library does. A simulation needs
none, so none is loaded here, whatever `MUJOCO_GL` says; only the camera's own process chooses one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from crashbo.extras import Absent

LIBRARY = "CRASHBO_CAMERA_GL"  # environment variable by which the camera chooses it


@contextmanager
def _graphics(library: str) -> Iterator[None]:
    """Set MuJoCo's graphics library for a moment, then restore the user's choice."""
    said = os.environ.get("MUJOCO_GL")
    os.environ["MUJOCO_GL"] = library
    try:
        yield
    finally:
        if said is None:
            del os.environ["MUJOCO_GL"]
        else:
            os.environ["MUJOCO_GL"] = said


try:
    with _graphics(os.environ.get(LIBRARY, "disable")):
        import mujoco
except ModuleNotFoundError as error:
    if error.name != "mujoco":
        raise
    raise Absent("solo8-jump", "mujoco", "robot") from error

__all__ = ["LIBRARY", "mujoco"]
