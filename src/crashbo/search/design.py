"""The initial design: the first trials, which fill the space before there is a model.

May import models and below.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashbo.search.dead_ends import NOWHERE, DeadEnds
from crashbo.search.maximise import kronecker
from crashbo.search.risk import Risk, is_bold
from crashbo.search.space import Params, Space

Array = NDArray[np.float64]

_TRIES = 100  # judgement: settings in a row that may have been tried; in a small space all are, sooner or later
_SIZE = 4  # judgement: trials of a study without a budget or a floor


@dataclass(frozen=True)
class Design:
    """How many trials come before the models, and where the sequence that gives them stands.

    A study with start points needs none. A cautious one, with a budget or a floor, begins with the
    centre of its space alone: the safe region then grows from there.
    """

    size: int
    shift: tuple[float, ...]
    given: int = 0

    @staticmethod
    def for_study(space: Space, risk: Risk, starts: int | None, rng: np.random.Generator) -> "Design":
        """The design of a study with this many start points (None: not given)."""
        bold = is_bold(risk)
        size = starts if starts else (_SIZE if bold else 1)
        shift = rng.random(space.dimension) if bold else np.full(space.dimension, 0.5)
        return Design(size, tuple(map(float, shift)))

    def fitted_to(self, space: Space) -> "Design":
        """The design for a space with more or fewer coordinates."""
        shift = np.resize(self.shift, space.dimension)
        return replace(self, shift=tuple(map(float, shift)))

    def next(self, space: Space) -> tuple["Design", Array]:
        """The design after its next point, and the point."""
        point = (np.array(self.shift) + self.given * kronecker(space.dimension)) % 1.0
        return replace(self, given=self.given + 1), space.uniform(point[None, :])[0]

    def next_new(
        self, space: Space, tried: Sequence[Params], dead_ends: DeadEnds = NOWHERE
    ) -> tuple["Design", dict[str, Any]]:
        """The design after its next setting that was not tried and is no dead end, unless all are, and the setting."""
        design = self
        for _ in range(_TRIES):
            design, x = design.next(space)
            params = space.decode(x)
            if params not in tried and not dead_ends.hold(x[None])[0]:
                return design, params
        return design, space.decode(dead_ends.clear(x[None])[0])
