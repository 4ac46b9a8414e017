"""Records or replays histories with the crashbo that Python finds; the worker of replay.py.

    python -m histories record FOLDER [--only PART,...] [--most STEPS]
    python -m histories replay FOLDER

Prints one line of JSON per history when it ends.
"""

import argparse
import gzip
import json
import pickle
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import crashbo
from histories import ALL
from histories.tape import Enough, Step


def record(folder: Path, only: list[str], most: int | None) -> None:
    names = [name for name in ALL if not only or any(part in name for part in only)]
    for i, name in enumerate(names):
        kind, play = ALL[name]
        tape, since = kind(most=most), time.perf_counter()
        with suppress(Enough):
            play(tape)
        with gzip.open(folder / f"{i:03d}-{name}.gz", "wb", compresslevel=1) as file:
            pickle.dump([tuple(step) for step in tape.steps], file)
        say(name=name, of=len(names), steps=len(tape.steps), seconds=time.perf_counter() - since)


def replay(folder: Path) -> None:
    for path in sorted(folder.glob("*.gz")):
        with gzip.open(path, "rb") as file:
            recorded = [Step(*step) for step in pickle.load(file)]
        name, asks = path.stem.partition("-")[2], sum(step.what.startswith("ask") for step in recorded)
        words = differences(name, recorded)
        say(name=name, asks=asks, steps=len(recorded), differ=len(words), first="".join(words[:1]))


def differences(name: str, recorded: list[Step]) -> list[str]:
    """The first difference of each step that differs, as text."""
    if name not in ALL:
        return ["of all: nobody here knows this history"] * len(recorded)
    kind, play = ALL[name]
    tape, broken = kind(recorded), []
    try:
        with suppress(Enough):
            play(tape)
    except Exception as error:
        broken = [f"step {len(tape.steps)}: the history itself raises {error!r}"]
    if not broken and len(tape.steps) < len(recorded):
        broken = [f"step {len(tape.steps)}: the history ends before its record does"]
    return [f"step {d.step} ({d.what}): {d.words}" for d in tape.differences] + broken


def say(**words: Any) -> None:
    print(json.dumps(words), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "replay"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--most", type=int)
    args = parser.parse_args()
    say(crashbo=str(Path(crashbo.__file__).parents[1]))
    if args.what == "record":
        record(args.folder, list(filter(None, args.only.split(","))), args.most)
    else:
        replay(args.folder)


if __name__ == "__main__":
    main()
