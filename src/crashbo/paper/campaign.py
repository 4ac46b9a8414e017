"""A campaign: every method on every problem, repeat by repeat.

May import the public API and `problems`.
"""

from dataclasses import dataclass

from crashbo import problems
from crashbo.paper.methods import METHODS
from crashbo.paper.runs import PaperSpec


@dataclass(frozen=True)
class Campaign:
    """What is compared.

    Attributes:
        methods: names in METHODS.
        problems: names for `problems.get`: ours, or "module:name" of the user's own.
        repeats: of every method on every problem.
        trials: per run.
        known_noise: whether the methods are told the noise.
    """

    methods: tuple[str, ...]
    problems: tuple[str, ...]
    repeats: int
    trials: int
    known_noise: bool = False

    def __post_init__(self) -> None:
        own = [name for name in self.problems if ":" in name]
        for name in own:
            problems.get(name)  # raises an error that says what is wrong with it
        for what, given, known in (
            ("methods", self.methods, list(METHODS)),
            ("problems", self.problems, [*problems.names(), *own]),
        ):
            strange = [name for name in given if name not in known]
            if strange or not given or len(set(given)) < len(given):
                raise ValueError(
                    f"{what} must be different ones of {', '.join(known)}; got {', '.join(given) or 'none'}. "
                    "Separate them by commas."
                )
        for what, count in (("repeats", self.repeats), ("trials", self.trials)):
            if count < 1:
                raise ValueError(f"{what} must be a whole number, at least 1; got {count}. Count them.")

    @property
    def refusals(self) -> dict[tuple[str, str], str]:
        """Pairs of method and problem that cannot be combined, and why."""
        found = {name: problems.get(name) for name in self.problems}
        reasons = {(m, p): METHODS[m].refusal(problem) for m in self.methods for p, problem in found.items()}
        return {pair: reason for pair, reason in reasons.items() if reason is not None}

    def specs(self) -> list[PaperSpec]:
        """All runs, ordered by repeat: what is finished at any time is balanced."""
        refused = self.refusals
        return [
            PaperSpec(method, problem, repeat, self.trials, self.known_noise)
            for repeat in range(self.repeats)
            for problem in self.problems
            for method in self.methods
            if (method, problem) not in refused
        ]
