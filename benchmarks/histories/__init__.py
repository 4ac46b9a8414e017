"""Histories of studies that `replay.py` records with one version of crashbo and replays with another.

Only public names are used, so that the same histories run with every version.
"""

from typing import Any

from histories import benches, optuna_studies, runs, studies
from histories.tape import StudyTape, Tape

# Name to kind of tape and what is played on it.
ALL: dict[str, tuple[type[Tape], Any]] = {
    **{name: (StudyTape, play) for name, play in (studies.HISTORIES | runs.RUNS).items()},
    **{name: (runs.JournalTape, play) for name, play in runs.JOURNALS.items()},
    **{name: (optuna_studies.OptunaTape, play) for name, play in optuna_studies.HISTORIES.items()},
    **{name: (benches.BenchTape, play) for name, play in benches.HISTORIES.items()},
}
