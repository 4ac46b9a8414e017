"""Does a change preserve behaviour? Studies recorded with one revision, replayed with another, compared bit by bit.

    python benchmarks/replay.py b612d08                  # a revision against the working tree
    python benchmarks/replay.py b612d08 main             # two revisions
    python benchmarks/replay.py b612d08 --only budget,optuna --keep records
    python benchmarks/replay.py                          # HEAD against the working tree, only the first steps

`histories/` defines what is done to the studies. The old revision does it and records, for every step, the saved study
before, the answer, and the saved study afterwards. The new one starts every step from the old one's study, so that one
difference does not hide others. A saved study may gain keys; everything that the old revision saved or answered must be
there unchanged. Exits with 1 if anything differs.

Only the package in src/ is taken from the revisions; histories, Python and all packages are those that run this script.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BEGINNING = 16  # steps of each history, where no revision is named


def package(revision: str | None, folder: Path) -> Path:
    """The directory with crashbo of a revision; None copies the working tree, which may change in the meantime."""
    if revision is None:
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        return folder / "src"
    command = ["git", "-C", str(ROOT), "archive", revision, "src"]
    done = subprocess.run(command, capture_output=True)
    if done.returncode:
        raise SystemExit(f"revision must be one of this repository's; got {revision!r}. {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def worker(source: Path, *words: str) -> Iterator[dict[str, Any]]:
    """The answers of a process with that crashbo, history by history."""
    paths = os.pathsep.join([str(source), str(ROOT / "benchmarks")])
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "histories", *words]
    process = subprocess.Popen(command, env=environment, cwd=source, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        found = json.loads(process.stdout.readline() or "{}").get("crashbo")
        if found is not None and Path(found).resolve() != source.resolve():
            process.terminate()
            raise SystemExit(f"crashbo must be that of {source}; Python found {found}. Uninstall it, or take another.")
        yield from map(json.loads, process.stdout)
    if process.wait():
        raise SystemExit(f"{words[0]} must end well; it ended with {process.returncode}. What it said stands above.")


def progress(words: str) -> None:
    """Show progress: on a terminal in one line that is overwritten, in a log on lines of its own."""
    print(f"\r{words}\x1b[K" if sys.stderr.isatty() else f"{words}\n", end="", file=sys.stderr, flush=True)


def compare(old: Path, new: Path, records: Path, *words: str) -> int:
    """Record and replay; returns how many histories differ."""
    since = time.perf_counter()
    for i, done in enumerate(worker(old, "record", str(records), *words), start=1):
        progress(f"recorded {i}/{done['of']}: {done['name']}, {done['steps']} steps in {done['seconds']:.1f} s")
    progress("")
    histories = asks = steps = differ = 0
    for done in worker(new, "replay", str(records)):
        count = "1 step differs" if done["differ"] == 1 else f"{done['differ']} steps differ"
        verdict = f"{count}; first {done['first']}" if done["differ"] else "same"
        print(f"{done['name']:24s} {done['asks']:3d} asks of {done['steps']:3d} steps: {verdict}", flush=True)
        histories, asks, steps = histories + 1, asks + done["asks"], steps + done["steps"]
        differ += done["differ"] > 0
    seconds = time.perf_counter() - since
    print(f"{histories} histories, {asks} asks, {steps} steps, {seconds:.0f} s: {differ or 'none'} differ")
    if not histories:
        raise SystemExit("no history has such a name. Leave --only out to see them all.")
    return differ


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?", metavar="OLD", help="a revision (default: HEAD, and then --most is 16)")
    parser.add_argument("new", nargs="?", metavar="NEW", help="another one (default: the working tree)")
    parser.add_argument("--only", metavar="PART,...", help="histories with one of these in their names")
    parser.add_argument("--most", type=int, metavar="STEPS", help="end each history after so many steps")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the records there, which must be empty or new")
    args = parser.parse_args()
    most = args.most or (None if args.old else BEGINNING)
    words = [*(["--only", args.only] if args.only else []), *(["--most", str(most)] if most else [])]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in ("old", "new", "records"):
            (folder / name).mkdir()
        records = folder / "records" if args.keep is None else args.keep.absolute()
        records.mkdir(parents=True, exist_ok=True)
        if any(records.iterdir()):
            raise SystemExit(f"--keep must be empty or new; {str(args.keep)!r} is not. Name another.")
        old, new = package(args.old or "HEAD", folder / "old"), package(args.new, folder / "new")
        sys.exit(1 if compare(old, new, records, *words) else 0)


if __name__ == "__main__":
    main()
