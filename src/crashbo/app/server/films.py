"""Photos and films of trials, which somebody else takes: files in a folder, or addresses. May import every other layer.

A file is named after its trial: `7.mp4`, `7.jpg`. It may come while the server runs.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

KINDS = ("mp4", "webm", "gif", "webp", "png", "jpg", "jpeg")  # of several files of a trial the first kind is shown
_NAME = re.compile(r"(\d{1,9})\.(" + "|".join(KINDS) + ")", re.ASCII)
_PLACE = "{number}"


@dataclass(frozen=True)
class Films:
    """Where they are; nowhere by default."""

    folder: Path | None = None
    address: str = ""  # with {number} in it

    @staticmethod
    def of(where: str | None) -> "Films":
        """A folder, or an address in which {number} stands for a trial's."""
        if not where:
            return Films()
        if "://" not in where:
            if not Path(where).is_dir():
                raise ValueError(f"films must be a folder, or an address with {_PLACE}; got {where!r}. Make it first.")
            return Films(Path(where))
        parts = urlsplit(where)
        odd = parts.scheme not in ("http", "https") or not re.fullmatch(r"[A-Za-z0-9.\-:\[\]]+", parts.netloc)
        if odd or _PLACE not in parts.path + parts.query:
            raise ValueError(f"films must be an http address with {_PLACE} in it; got {where!r}. Mend it.")
        return Films(address=where)

    @property
    def origin(self) -> str:
        """The server that the addresses are of, whose films the page may show; empty for our own."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}" if self.address else ""

    def known(self, numbers: Sequence[int]) -> dict[str, str]:
        """Addresses by number of trial: of files that are there, or of all trials where they are elsewhere."""
        if self.address:
            return {str(number): self.address.replace(_PLACE, str(number)) for number in numbers}
        if self.folder is None:
            return {}
        found: dict[str, str] = {}
        names = [m for path in self.folder.iterdir() if (m := _NAME.fullmatch(path.name))]
        for m in sorted(names, key=lambda m: KINDS.index(m[2])):
            found.setdefault(str(int(m[1])), f"/api/films/{m[0]}")
        return found

    def path(self, name: str) -> Path | None:
        """The file of that name; None if it is not there, or is no film's."""
        if self.folder is None or not _NAME.fullmatch(name) or not (self.folder / name).is_file():
            return None
        return self.folder / name
