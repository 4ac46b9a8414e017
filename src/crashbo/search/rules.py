"""Rules between parameters that are known before a trial: text such as "2 * x1 <= x3", or a user's own function.

May import models and below. Longer than most files: the grammar, its terms and its parser belong together.

Text is parsed, never evaluated as Python. The grammar:
    rule    = sum ("<=" | ">=" | "<" | ">" | "==") sum
    sum     = product { ("+" | "-") product }
    product = factor { ("*" | "/") factor }
    factor  = ("+" | "-") factor | number | name | "(" sum ")"
A name that is not made of letters, digits and underscores stands in quotes. A rule that names a parameter that does not
exist in a trial holds there.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

from crashbo.search import own
from crashbo.search.parameters import is_number

# judgement: rounding is no breach: relative to the size of a rule's terms, in an equality, or in what a user writes
TOLERANCE = 1e-9
_LONGEST, _DEEPEST = (
    500,
    50,
)  # judgement: characters of a rule, and brackets within brackets: more is no rule of a person
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d]\w*)|(?P<quoted>'[^']+'|\"[^\"]+\"|`[^`]+`)"
    r"|(?P<sign><=|>=|==|[-+*/()<>]))"
)
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
}
_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


class Linear(NamedTuple):
    """A sum of parameters with factors, and a constant."""

    factors: dict[str, float]
    constant: float

    def times(self, factor: float) -> "Linear":
        """Multiplied."""
        return Linear({name: factor * f for name, f in self.factors.items()}, factor * self.constant)

    def plus(self, other: "Linear") -> "Linear":
        """The sum of both."""
        names = {**self.factors, **other.factors}
        factors = {name: self.factors.get(name, 0.0) + other.factors.get(name, 0.0) for name in names}
        return Linear(factors, self.constant + other.constant)


@dataclass(frozen=True)
class Number:
    """A number."""

    value: float

    def at(self, params: Mapping[str, float]) -> float:
        """Its value."""
        return self.value

    def linear(self) -> Linear | None:
        """As a sum."""
        return Linear({}, self.value)

    def names(self) -> frozenset[str]:
        """The parameters in it."""
        return frozenset()


@dataclass(frozen=True)
class Named:
    """A parameter."""

    name: str

    def at(self, params: Mapping[str, float]) -> float:
        """Its value."""
        return params[self.name]

    def linear(self) -> Linear | None:
        """As a sum."""
        return Linear({self.name: 1.0}, 0.0)

    def names(self) -> frozenset[str]:
        """The parameters in it."""
        return frozenset({self.name})


@dataclass(frozen=True)
class Operation:
    """Two terms and a sign between them."""

    sign: str
    left: "Term"
    right: "Term"

    def at(self, params: Mapping[str, float]) -> float:
        """Its value; NaN for a division by zero."""
        left, right = self.left.at(params), self.right.at(params)
        return math.nan if self.sign == "/" and right == 0.0 else _OPERATIONS[self.sign](left, right)

    def linear(self) -> Linear | None:
        """As a sum, if it is one."""
        left, right = self.left.linear(), self.right.linear()
        if left is None or right is None:
            return None
        if self.sign in "+-":
            return left.plus(right.times(1.0 if self.sign == "+" else -1.0))
        if self.sign == "*" and not left.factors:
            left, right = right, left
        if right.factors or (self.sign == "/" and right.constant == 0.0):
            return None
        return left.times(right.constant if self.sign == "*" else 1.0 / right.constant)

    def names(self) -> frozenset[str]:
        """The parameters in it."""
        return self.left.names() | self.right.names()


Term = Number | Named | Operation


@dataclass(frozen=True)
class TextRule:
    """A rule as text, parsed."""

    text: str
    left: Term = field(compare=False, repr=False)
    right: Term = field(compare=False, repr=False)
    sign: str = field(compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _parsed, (self.text,)

    @property
    def words(self) -> str:
        """As the user wrote it."""
        return self.text

    @cached_property
    def names(self) -> frozenset[str]:
        """The parameters that it names."""
        return self.left.names() | self.right.names()

    @cached_property
    def linear(self) -> Linear | None:
        """Left minus right as a sum, where the rule is linear."""
        found = Operation("-", self.left, self.right).linear()
        return found if found is None or all(map(math.isfinite, (*found.factors.values(), found.constant))) else None

    def holds(self, params: Mapping[str, Any], *, rounded: bool = False) -> bool:
        """Whether params keep it; `rounded` forgives what rounding breaks, as an equality always does."""
        if not all(name in params for name in self.names):
            return True
        values = {name: float(params[name]) for name in self.names}
        left, right = self.left.at(values), self.right.at(values)
        if _COMPARISONS[self.sign](left, right):
            return True
        return (rounded or self.sign == "==") and abs(left - right) <= TOLERANCE * self._size(values, left, right)

    def _size(self, values: Mapping[str, float], left: float, right: float) -> float:
        """Of its largest term: a difference of two is small beside them."""
        terms = (abs(f * values[name]) for name, f in self.linear.factors.items()) if self.linear is not None else ()
        return max(abs(left), abs(right), *terms)


@dataclass(frozen=True)
class OwnRule:
    """A user's own function of params: true where they keep the rule."""

    function: Callable[[Mapping[str, Any]], Any]
    lenient: bool = field(default=False, compare=False)  # whether parameters may yet come that nobody has seen

    names = frozenset[str]()
    linear = None

    @property
    def words(self) -> str:
        """Its name."""
        return str(getattr(self.function, "__name__", repr(self.function)))

    def holds(self, params: Mapping[str, Any], *, rounded: bool = False) -> bool:
        """Whether params keep it; one that asks for a parameter that does not exist here holds."""
        try:
            return bool(self.function(_Params(params)))
        except _Absent:
            return True

    def check(self, params: Mapping[str, Any], names: Iterable[str]) -> None:
        """Refuse one that, at params, asks for something that is no parameter at all."""
        try:
            self.function(_Params(params))
        except _Absent as error:
            if error.args[0] not in (known := list(names)) and not self.lenient:
                raise ValueError(
                    f"rules must name parameters of the space ({', '.join(known)}); got {error.args[0]!r} in "
                    f"{self.words!r}. Mend the name."
                ) from None


Rule = TextRule | OwnRule


class _Absent(KeyError):
    """A parameter that does not exist in a trial."""


class _Params(dict[str, Any]):
    """Params that say so when one of them does not exist."""

    def __missing__(self, name: str) -> NoReturn:
        raise _Absent(name)


def rules_of(said: Any) -> tuple[Rule, ...]:
    """Rules from what a user writes."""
    if said is None:
        return ()
    several = [said] if isinstance(said, str | TextRule | OwnRule) or callable(said) else said
    if not isinstance(several, Sequence):
        raise ValueError(f"rules must be a list of texts and functions; got {said!r}. Write ['a <= b'], for example.")
    return tuple(map(_rule, several))


def rules_out(rules: Sequence[Rule]) -> list[Any]:
    """As plain values: texts, and names of functions."""
    return [rule.text if isinstance(rule, TextRule) else own.name_of(rule.function) for rule in rules]


def _rule(said: Any) -> Rule:
    if isinstance(said, TextRule | OwnRule):
        return said
    if own.is_named(said):
        raise own.refusal("rules", said)
    if isinstance(said, str):
        return _parsed(said)
    if callable(said) and not isinstance(said, type):
        return OwnRule(said)
    raise ValueError(f"rules must be texts such as 'a <= b', or functions of params; got {said!r}. Mend it.")


def _parsed(text: str) -> TextRule:
    return _Parser(text).rule()


def check_names(rule: Rule, numbers: Mapping[str, bool]) -> None:
    """Refuse a rule that names what is unknown, or what is no number; `numbers` says which parameters are."""
    for name in sorted(rule.names):
        if name not in numbers:
            raise ValueError(
                f"rules must name parameters of the space ({', '.join(numbers)}); got {name!r} in {rule.words!r}. "
                "Mend the name."
            )
        if not numbers[name]:
            raise ValueError(
                f"rules must compare numbers; got {name!r}, which has options that are none, in {rule.words!r}. "
                "Write a function of params."
            )


def named_beside(name: str, rules: Iterable[Rule], others: Iterable[str]) -> set[str]:
    """Those of the other parameters that some rule names beside this one; a function may ask for any."""
    beside = [rule.names or {name, *others} for rule in rules]
    return {other for names in beside if name in names for other in names} - {name}


class _Parser:
    """Recursive descent through one rule."""

    def __init__(self, text: str) -> None:
        self.text, self.depth, self.at = text, 0, 0
        if len(text) > _LONGEST:
            raise ValueError(f"rule must have at most {_LONGEST} characters; got {len(text)}. Split it.")
        self.kinds: list[str] = []
        self.tokens = self._tokens()

    def rule(self) -> TextRule:
        """The whole."""
        left = self._sum()
        sign = self._next()
        if sign not in _COMPARISONS:
            self._refuse("must compare two sides by <=, >=, <, > or ==")
        right = self._sum()
        if self._peek() is not None:
            again = self._peek() in _COMPARISONS
            self._refuse("must have one comparison" if again else "must end after its right side")
        rule = TextRule(self.text.strip(), left, right, sign)
        if not rule.names:
            self._refuse("must name a parameter")
        return rule

    def _tokens(self) -> list[str]:
        at, text = 0, self.text.rstrip()
        found: list[str] = []
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                rest = text[at:].lstrip()[:10]
                self._refuse(f"must be made of parameters, numbers, + - * / ( ) and one comparison; stuck at {rest!r}")
            found.append(match[match.lastgroup or 0])
            self.kinds.append(match.lastgroup or "")
            at = match.end()
        return found

    def _sum(self) -> Term:
        term = self._product()
        while self._peek() in ("+", "-"):
            term = Operation(self._next() or "", term, self._product())
        return term

    def _product(self) -> Term:
        term = self._factor()
        while self._peek() in ("*", "/"):
            term = Operation(self._next() or "", term, self._factor())
        return term

    def _factor(self) -> Term:
        self.depth += 1
        if self.depth > _DEEPEST:
            self._refuse(f"must have at most {_DEEPEST} brackets or signs within each other")
        term = self._bare_factor()
        self.depth -= 1
        return term

    def _bare_factor(self) -> Term:
        token = self._next()
        if token == "(":
            term = self._sum()
            if self._next() != ")":
                self._refuse("must close its brackets")
            return term
        if token == "-":
            return Operation("*", Number(-1.0), self._factor())
        if token == "+":
            return self._factor()
        kind = "" if token is None else self.kinds[self.at - 1]
        if token is None or kind == "sign":
            self._refuse("must have a parameter or a number on both sides of a sign")
        if kind != "number":
            return Named(token if kind == "name" else token[1:-1])
        if not is_number(float(token)):
            self._refuse("must have finite numbers")
        return Number(float(token))

    def _peek(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _next(self) -> str | None:
        token = self._peek()
        self.at += 1
        return token

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(f"rule {why}; got {self.text!r}. Write 'a + 2 * b <= 1', for example.")
