"""Spaces: from the user's parameters to the unit cube and back.

May import models and below. Longer than most files, since everything that is asked of a space goes through one class.

A space may have parameters that exist only beside certain values of others (`when`), rules between parameters
(`search.rules`), and contexts, which are met and not chosen. Params hold what exists; everything that a space snaps,
spreads or steps to keeps the rules.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashbo.search import rules as grammar
from crashbo.search.conditions import Conditions
from crashbo.search.feasible import Feasible, is_numeric
from crashbo.search.parameters import (
    SLACK,
    Choice,
    Context,
    Float,
    Int,
    Parameter,
    is_number,
    listed,
    parameter_of,
)
from crashbo.search.rules import Rule

__all__ = [
    "SAME",
    "SLACK",
    "Choice",
    "Context",
    "Float",
    "Int",
    "Parameter",
    "Params",
    "Space",
    "is_near",
    "is_number",
    "places",
]

Array = NDArray[np.float64]
Params = Mapping[str, Any]  # a value per parameter
WithGradient = Callable[[Array], tuple[Array, Array]]

SAME = 1e-6  # judgement: two points closer than this in every coordinate are one
_LOOKED_AT = 8  # judgement: params at which a function is asked whether it knows its parameters
_ROWS = 64  # judgement: compared at once, for memory


@dataclass(frozen=True)
class Space:
    """Named parameters, and the unit cube that the models see.

    Parameters in `fixed` stay where they are in everything that is proposed; nothing proposed breaks one of `rules`.
    """

    parameters: Mapping[str, Parameter]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        self.conditions.conditional  # noqa: B018 (it refuses a circle)

    @staticmethod
    def of(space: "Space | Mapping[str, Any]") -> "Space":
        """A space from a mapping of names to parameters or (low, high); what has one value is fixed."""
        if isinstance(space, Space):
            return space
        if not isinstance(space, Mapping) or not space:
            raise ValueError(
                f"space must map names to parameters; got {space!r}. Write {{'gain': (0.0, 1.0)}}, for example."
            )
        parameters = {_name(name): parameter_of(name, value) for name, value in space.items()}
        alone = {n: p.low for n, p in parameters.items() if isinstance(p, Float | Int) and p.count == 1}
        made = Space(parameters, alone)
        if not made.chosen:
            raise ValueError(f"space must have a parameter to choose; got contexts alone: {listed(space)}. Add one.")
        return made

    @cached_property
    def dimension(self) -> int:
        """Coordinates in the unit cube."""
        return sum(p.width for p in self.parameters.values())

    @cached_property
    def continuous(self) -> NDArray[np.bool_]:
        """Which coordinates may take any value in [0, 1]."""
        return np.concatenate(
            [np.full(p.width, p.continuous and name not in self.fixed) for name, p in self.parameters.items()]
        )

    @cached_property
    def tied(self) -> tuple[int, ...]:
        """For each coordinate the number of its lengthscale: the options of a Choice share one. Empty without those."""
        widths = [p.width for p in self.parameters.values()]
        return tuple(np.repeat(range(len(widths)), widths).tolist()) if max(widths, default=1) > 1 else ()

    @property
    def size(self) -> float:
        """How many different points there are, rules aside."""
        return math.prod(p.count for name, p in self.parameters.items() if name not in self.fixed)

    @cached_property
    def contexts(self) -> tuple[str, ...]:
        """The parameters that are met and not chosen."""
        return tuple(name for name, p in self.parameters.items() if isinstance(p, Context))

    @cached_property
    def chosen(self) -> tuple[str, ...]:
        """The other parameters."""
        return tuple(name for name in self.parameters if name not in self.contexts)

    @property
    def met(self) -> tuple[tuple[int, float], ...]:
        """The coordinates of contexts that are given, and where they are."""
        given = [name for name in self.contexts if name in self.fixed]
        return tuple((self.at(name).start, self.parameters[name].encode(self.fixed[name])[0]) for name in given)

    @cached_property
    def without_contexts(self) -> "Space":
        """What is chosen, under the rules that say nothing of contexts."""
        if not self.contexts:
            return self
        rules = tuple(r for r in self.rules if isinstance(r, grammar.TextRule) and not r.names & set(self.contexts))
        return Space({name: self.parameters[name] for name in self.chosen}, dict(self.fixed), rules)

    @cached_property
    def conditions(self) -> Conditions:
        """Which parameters exist."""
        return Conditions(self.parameters)

    @property
    def parents(self) -> frozenset[str]:
        """The parameters on whose values it depends which others exist."""
        return self.conditions.parents

    @property
    def is_plain(self) -> bool:
        """Whether every parameter always exists, and there are no rules."""
        return not self.conditions.conditional and not self.rules

    def accepts(self, params: Mapping[str, Any]) -> bool:
        """Whether params can be proposed: those that exist, each in range, fixed where one is, and no rule broken."""
        names = self.existing(params)
        return (
            set(names) == set(params)
            and not self.conditions.lacking(params)
            and all(self._accepts(name, params[name]) for name in names)
            and self.broken(params) is None
        )

    def _accepts(self, name: str, value: Any) -> bool:
        p = self.parameters[name]
        return p.accepts(value) and (name not in self.fixed or p.encode(value) == p.encode(self.fixed[name]))

    def check(self, params: Params, *, steps: bool = True) -> dict[str, Any]:
        """The params in the space's order and types, or one clear sentence; without `steps`, between those, too."""
        if (
            not isinstance(params, Mapping)
            or not set(params) <= set(self.parameters)
            or self.conditions.lacking(params)
        ):
            needed = (
                {*self.existing(params), *self.conditions.lacking(params)}
                if isinstance(params, Mapping)
                else {*self.parameters}
            )
            names = listed(name for name in self.parameters if name in needed or not self.conditions.conditional)
            raise ValueError(f"params must name each of {names}; got {params!r}. Give one value per parameter.")
        for name in set(params) - set(self.existing(params)):
            raise ValueError(
                f"{name} must be left out, since it exists only when {self.conditions.words(name)}; got {params!r}. "
                "Leave it out."
            )
        for name in self.existing(params):
            p = self.parameters[name]
            if not (p.accepts if steps else p.spans)(params[name]):
                raise ValueError(f"{name} must {p.rule()}; got {params[name]!r}. Mend it, or widen the space.")
        return {name: self.parameters[name].plain(params[name]) for name in self.existing(params)}

    def check_proposable(self, what: str, params: Params) -> dict[str, Any]:
        """The params, checked, if they break no rule."""
        found = self.check(params)
        self.check_unbroken(what, found)
        return found

    def check_unbroken(self, what: str, params: Params) -> None:
        """Refuse params that break a rule."""
        rule = self.broken(params)
        if rule is not None:
            raise ValueError(
                f"{what} must keep every rule; got {dict(params)!r}, which breaks {rule.words!r}. Mend it."
            )

    def broken(self, params: Params) -> Rule | None:
        """The first rule that params break by more than rounding."""
        return next((rule for rule in self.rules if not rule.holds(params, rounded=True)), None)

    def made_whole(self, params: Params, held: Iterable[str]) -> dict[str, Any]:
        """Params whose others make room for those that are held, where a sum is given; as they are where that fails."""
        rule = self.broken(params)
        if not isinstance(rule, grammar.TextRule) or rule.sign != "==" or rule.linear is None:
            return dict(params)
        space = self.with_fixed({name: params[name] for name in held if name in params})
        moved = space.decode(space.feasible.on_sums(self.encode(params)))
        return (
            dict(params) if self.broken(moved) is not None else {**moved, **{n: params[n] for n in held if n in moved}}
        )

    def as_run(self, params: Params, ran: Params) -> dict[str, Any]:
        """Params as they were run, where that differed in some of them: in range or not, on a step or not."""
        for name, value in ran.items():
            if name not in self.parameters:
                raise ValueError(f"ran must name parameters ({listed(self.parameters)}); got {name!r}. Mend the name.")
            if not self.parameters[name].reads(value):
                raise ValueError(f"ran[{name!r}] must {_readable(self.parameters[name])}; got {value!r}. Mend it.")
        both = {**params, **ran}
        if lacking := self.conditions.lacking(both):
            raise ValueError(f"ran must name {listed(lacking)}, too, which exists then; got {dict(ran)!r}. Add it.")
        return {name: self.parameters[name].plain(both[name]) for name in self.existing(both)}

    def revived(self, params: Params) -> dict[str, Any]:
        """Params that went through JSON, where an option that is a tuple comes back as a list."""
        out = dict(params)
        for name, p in self.parameters.items():
            if isinstance(p, Choice) and isinstance(out.get(name), list):
                out[name] = next((o for o in p.options if isinstance(o, tuple) and _listed(o) == out[name]), out[name])
        return out

    def existing(self, values: Params) -> list[str]:
        """The parameters that exist beside these values of them, in order; those without a value do not count."""
        return self.conditions.existing(values)

    def encode(self, params: Mapping[str, Any]) -> Array:
        """The unit-cube point of params."""
        return np.array(
            [
                u
                for name, p in self.parameters.items()
                for u in (p.encode(params[name]) if p.when is None or name in params else p.absent)
            ]
        )

    def decode(self, u: Array) -> dict[str, Any]:
        """The params at (or nearest to) a unit-cube point."""
        values = {name: p.decode(u[at]) for name, p, at in self._slices()}
        return values if not self.conditions.conditional else {name: values[name] for name in self.existing(values)}

    def snap(self, U: Array) -> Array:
        """The nearest points that params have, row by row; where a rule forbids those, near ones that it allows."""
        out = self.snapped(U)
        return self.feasible.nearest(out) if self.rules else out

    def snapped(self, U: Array) -> Array:
        """The nearest points that params have, rules aside."""
        if self._is_cube:
            return np.minimum(np.maximum(U, 0.0), 1.0)
        out = np.array(U, dtype=float)
        for name, p, at in self._slices():
            out[:, at] = p.encode(self.fixed[name]) if name in self.fixed else p.snap(out[:, at])
        for name, exists in self._existence(out).items():
            out[~exists, self.at(name)] = self.parameters[name].absent
        return out

    def with_fixed(self, fixed: Mapping[str, Any]) -> "Space":
        """The space with some parameters held at a value."""
        for name, value in fixed.items():
            if name not in self.parameters:
                raise ValueError(f"fixed must name parameters of the space; got {name!r}. Mend the name.")
            if not self.parameters[name].accepts(value):
                raise ValueError(f"{name} must {self.parameters[name].rule()}; got {value!r}. Mend it.")
        plain = {name: self.parameters[name].plain(value) for name, value in fixed.items()}
        return replace(self, fixed={**self.fixed, **plain})

    def with_rules(self, rules: tuple[Rule, ...]) -> "Space":
        """The same parameters under these rules."""
        return self if rules == self.rules else replace(self, rules=rules)

    def check_rules(self) -> None:
        """Refuse rules that name what is unknown, or that nothing keeps."""
        numeric = {name: is_numeric(p) for name, p in self.parameters.items()}
        for rule in self.rules:
            grammar.check_names(rule, numeric)
        known = self.feasible.known[:_LOOKED_AT] if self.rules else ()  # or it refuses
        for rule in self.rules:
            if isinstance(rule, grammar.OwnRule):
                for u in known:
                    rule.check(self.decode(u), self.parameters)

    @property
    def is_empty(self) -> bool:
        """Whether no params were found that keep the rules, beside what is held."""
        try:
            return bool(self.rules) and not len(self.feasible.known)
        except ValueError:
            return True

    def in_context(self, context: Params | None) -> "Space":
        """The space where its contexts are as given: all of them, and nothing else."""
        if not self.contexts and not context:
            return self
        if not isinstance(context, Mapping) or set(context) != set(self.contexts):
            words = listed(self.contexts) or "nothing, as the space has no Context"
            raise ValueError(f"context must give {words}; got {context!r}. Say what is met.")
        return self.with_fixed(context)

    def changed(self, space: "Space | Mapping[str, Any] | None", fixed: Mapping[str, Any] | None) -> "Space":
        """The same parameters with other bounds, if given, and some of them held."""
        new = self if space is None else Space.of(space)
        if list(new.parameters) != list(self.parameters):
            raise ValueError(
                f"space must keep the parameters {list(self.parameters)}; got {list(new.parameters)}. "
                "Fix one with `fixed` instead of leaving it out."
            )
        if new.contexts != self.contexts:
            raise ValueError(f"space must keep its contexts {list(self.contexts)}; got {list(new.contexts)}. Mend it.")
        return new.with_fixed({**self.fixed, **(fixed or {})})

    def uniform(self, U: Array) -> Array:
        """Points spread evenly over the params, from points spread evenly over the unit cube (m, dimension)."""
        out = self.evened(U)
        return self.feasible.spread(out) if self.rules else out

    def evened(self, U: Array) -> Array:
        """Points spread evenly over the params, rules aside."""
        if self._is_cube:
            return self.snapped(U)
        out = np.array(U, dtype=float)
        for _, p, at in self._slices():
            out[:, at] = p.even(out[:, at])
        return self.snapped(out)

    def settled(self, X: Array) -> Array:
        """Points of the search, which moved some that params have: where all exist and no rule is, they have them."""
        return X if self.is_plain else self.snap(X)

    def along(self, objective: WithGradient) -> WithGradient:
        """An objective for an ascent that keeps to the linear rules, and moves nothing that does not exist."""
        if self.is_plain:
            return objective

        def kept(X: Array) -> tuple[Array, Array]:
            Y, slopes = self.feasible.onto(X)
            value, gradient = objective(Y)
            gradient = np.einsum("mij,mi->mj", slopes, gradient)
            for name, exists in self._existence(X).items():
                gradient[~exists, self.at(name)] = 0.0
            return value, gradient

        return kept

    def seen(self, X: Array) -> Array:
        """Points with NaN for parameters that do not exist there."""
        if not self.conditions.conditional:
            return X
        out = np.array(X, dtype=float)
        for name, exists in self._existence(X).items():
            out[~exists, self.at(name)] = np.nan
        return out

    def here(self, X: Array) -> Array:
        """Points as they were, in the context that is given."""
        out = X.copy() if self.met else X
        for at, value in self.met:
            out[:, at] = value
        return out

    def every(self) -> Array:
        """All points of a finite space, rules aside."""
        values = [[self.fixed[name]] if name in self.fixed else p.values() for name, p in self.parameters.items()]
        points = np.array([self.encode(dict(zip(self.parameters, point, strict=True))) for point in product(*values)])
        return points if not self.conditions.conditional else np.unique(self.snapped(points), axis=0)

    def steps(self, u: Array) -> Array:
        """The points that are one step from u in a whole number, or another option, (m, dimension)."""
        params, found = self.decode(u), []
        for name, p, at in self._slices():
            if name in self.fixed or name not in params:
                continue
            for other in p.neighbours(params[name]):
                step = np.array(u, dtype=float)
                step[at] = p.encode(other)
                found.append(step)
        return self.settled(np.array(found).reshape(-1, len(u)))

    def lacks_options(self, tried: Array) -> bool:
        """Whether some option of a Choice that always exists is at none of the tried points."""
        return any(not (tried[:, at].any(axis=0) | ~self._possible(at)).all() for _, _, at in self._hot())

    def with_rarest_options(self, U: Array, tried: Array) -> Array:
        """The points U, each such Choice at the option that is rarest among the tried points."""
        out = np.array(U, dtype=float)
        for _, p, at in self._hot():
            often = np.where(self._possible(at), tried[:, at].sum(axis=0), np.inf)
            out[:, at] = p.encode(p.options[int(np.argmin(often))])
        return self.settled(out)

    def _possible(self, at: slice) -> NDArray[np.bool_]:
        """Which options of a Choice the rules allow, as far as is known."""
        if not self.rules:
            return np.ones(at.stop - at.start, dtype=bool)
        return np.asarray(self.feasible.known[:, at].any(axis=0))

    def at(self, name: str) -> slice:
        """Where a parameter's coordinates are."""
        return self._places[name]

    @cached_property
    def feasible(self) -> Feasible:
        """Where the rules hold."""
        return Feasible(self)

    @cached_property
    def _places(self) -> dict[str, slice]:
        places, start = {}, 0
        for name, p in self.parameters.items():
            places[name] = slice(start, start + p.width)
            start += p.width
        return places

    @cached_property
    def _is_cube(self) -> bool:
        """Whether every point of the unit cube has params: all are floats that always exist, and none is fixed."""
        anywhere = all(type(p) is Float and p.step is None for p in self.parameters.values())
        return anywhere and not self.fixed and not self.conditions.conditional

    def _slices(self) -> Iterator[tuple[str, Parameter, slice]]:
        for name, p in self.parameters.items():
            yield name, p, self._places[name]

    def _hot(self) -> Iterator[tuple[str, Choice, slice]]:
        """The choices whose options have coordinates of their own, and that always exist."""
        for name, p, at in self._slices():
            if isinstance(p, Choice) and not p.ordered and p.when is None and name not in self.fixed:
                yield name, p, at

    def _existence(self, X: Array) -> dict[str, NDArray[np.bool_]]:
        """In which rows of X each parameter that does not always exist does."""
        if not self.conditions.conditional or not len(X):
            return {}
        rows = [set(self.decode(x)) for x in X]
        return {name: np.array([name in row for row in rows]) for name in self.conditions.conditional}


def _listed(option: Any) -> Any:
    """An option as JSON gives it back."""
    return [_listed(o) for o in option] if isinstance(option, tuple) else option


def _readable(p: Parameter) -> str:
    """What models can take, in words."""
    return p.rule() if isinstance(p, Choice) else "be a finite number above zero" if p.log else "be a finite number"


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"space must have names that are text; got {name!r}. Name each parameter.")
    return name


def is_near(X: Array, points: Array, gap: float) -> NDArray[np.bool_]:
    """Which rows of X lie closer than `gap` to one of `points`, in every coordinate."""
    near = np.zeros(len(X), dtype=bool)
    if len(points):
        for start in range(0, len(X), _ROWS):
            apart = np.abs(X[start : start + _ROWS, None, :] - points[None, :, :]).max(axis=2)
            near[start : start + _ROWS] = (apart < gap).any(axis=1)
    return near


def places(X: Array) -> NDArray[np.intp]:
    """Numbers from 0 on, one for every row of X; those of rows at one place are the same."""
    return np.unique(np.round(X / SAME), axis=0, return_inverse=True)[1].reshape(-1)
