"""What to say where an extra is not installed. Belongs to every layer; imports nothing of crashbo."""

from importlib.util import find_spec


class Absent(ModuleNotFoundError):
    """A module that an extra installs is not there.

    Args:
        what: needs it.
        name: of the module.
        extra: that installs it.
    """

    def __init__(self, what: str, name: str | None, extra: str) -> None:
        words = f"{what} needs {name}, which is not installed. Run: pip install 'crashbo[{extra}]'"
        super().__init__(words, name=name)


def needs(what: str, extra: str, *modules: str) -> None:
    """Refuse to go on where one of the modules is not installed."""
    for name in modules:
        if find_spec(name) is None:
            raise Absent(what, name, extra)
