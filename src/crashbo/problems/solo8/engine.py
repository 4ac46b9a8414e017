"""The one door to MuJoCo, which the extra `robot` brings. May import the public API, from the rooms that define it.

MuJoCo binds to a graphics library when it is imported, and the import fails where that library does. A simulation
needs none, so there is none here, whatever `MUJOCO_GL` says; only the camera's own process names one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

LIBRARY = "CRASHBO_CAMERA_GL"  # environment variable in which the camera names it


@contextmanager
def _graphics(library: str) -> Iterator[None]:
    """MuJoCo's choice of a graphics library, for a moment; then the user's again."""
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
    raise ModuleNotFoundError(
        "solo8-jump is simulated by MuJoCo, which is not installed. Run: pip install 'crashbo[robot]'", name="mujoco"
    ) from error

__all__ = ["LIBRARY", "mujoco"]
