"""The one door to MuJoCo, which the extra `robot` brings. May import the public API: optimizer, search and models."""

try:
    import mujoco
except ModuleNotFoundError as error:
    if error.name != "mujoco":
        raise
    raise ModuleNotFoundError(
        "solo8-jump is simulated by MuJoCo, which is not installed. Run: pip install 'crashbo[robot]'", name="mujoco"
    ) from error

__all__ = ["mujoco"]
