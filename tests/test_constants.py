"""Every number of the models, the search and the strategies says where it comes from: derived, fitted, or a judgement.

A constant says it in a comment on its own lines, right above it, or right above the run of constants that it stands in.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "crashbo"
FILES = sorted(path for layer in ("models", "search", "strategies") for path in (PACKAGE / layer).glob("*.py"))

WORDS = re.compile(r"\b(derived|fitted|judgement)\b")
NEUTRAL = {0.0, 1.0}  # what a sum or a product begins with
MATHEMATICAL = NEUTRAL | {0.5, 2.0, 10.0}  # halves, squares, decades
COUNTS = {0, 1, 2}


def numbers(node: ast.AST) -> Iterator[int | float]:
    """All numbers in an expression, without their signs."""
    for n in ast.walk(node):
        if isinstance(n, ast.Constant) and isinstance(n.value, int | float) and not isinstance(n.value, bool):
            yield n.value


def is_capital(target: ast.expr) -> bool:
    names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
    return bool(names) and all(name.isupper() for name in names)


def comments_of(source: str) -> dict[int, str]:
    """Comments by line: words in strings do not count."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}


class Provenance:
    """What the comments of a file say of its constants."""

    def __init__(self, source: str) -> None:
        self.lines, self.comments = source.splitlines(), comments_of(source)

    def is_said(self, run: list[ast.stmt], k: int) -> bool:
        """Of the k-th statement: on its lines, right above it, or right above the run of assignments it stands in."""
        own = run[k]
        if any(WORDS.search(self.comments.get(line, "")) for line in range(own.lineno, (own.end_lineno or 0) + 1)):
            return True
        while isinstance(run[k - 1], ast.Assign | ast.AnnAssign) and run[k - 1].end_lineno == run[k].lineno - 1:
            k -= 1
        line = run[k].lineno - 1
        while line > 0 and self.lines[line - 1].lstrip().startswith("#"):
            if WORDS.search(self.comments[line]):
                return True
            line -= 1
        return False


def complaints(source: str) -> list[str]:
    """Numbers of which nobody says where they come from."""
    tree, provenance = ast.parse(source), Provenance(source)
    found: list[str] = []
    for scope in [tree, *(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef))]:
        is_module = isinstance(scope, ast.Module)
        for k, statement in enumerate(scope.body):
            if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
                continue
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if is_module and not all(map(is_capital, targets)):
                continue
            chosen = set(numbers(statement.value)) - (set() if is_module else NEUTRAL)
            if chosen and not provenance.is_said(scope.body, k):
                found.append(f"line {statement.lineno}: {ast.unparse(statement)} does not say where it comes from")
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)):
        defaults = [d for d in (*function.args.defaults, *function.args.kw_defaults) if d is not None]
        unnamed = [n for d in defaults for n in numbers(d) if n not in COUNTS | MATHEMATICAL]
        body = function.body if isinstance(function.body, list) else [function.body]
        unnamed += [n for s in body for n in numbers(s) if isinstance(n, float) and n not in MATHEMATICAL]
        found += [f"line {function.lineno}: {n} has no name" for n in unnamed]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: "/".join(p.parts[-2:]))
def test_every_number_says_where_it_comes_from(path):
    assert complaints(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "_REACH = 0.1\n",
        "_REACH = 0.1  # of one step\n",
        '_REACH = 0.1\n"""judgement: in a string"""\n',
        "# judgement: of another block\n_FAR = 9.0\n\n_REACH = 0.1\n",
        "# judgement: too far above\n\n_REACH = 0.1\n",
        "_FAR = 9.0  # judgement: of its own line only\n_REACH = 0.1\n",
        "_LEVELS = (0.99, -0.95)\n",
        "_A, _B = 1, 2\n",
        "_RARE = Normal(0.75, -2.5)\n",
        "_LOG = float(np.log(0.3))\n",
        "_SIZE: int = 4\n",
        "class Adaptive:\n    usual: float = 0.9\n",
        "class Adaptive:\n    small: tuple[float, ...] = (0.75, 0.5)\n",
        "def step(x):\n    return 0.3 * x\n",
        "def step(x):\n    return [x, -2.5]\n",
        "def climb(evaluations: int = 35):\n    pass\n",
        "class A:\n    def f(self, *, enough=1e-3):\n        pass\n",
        "f = lambda x: 4.0 * x\n",
    ],
)
def test_a_number_without_a_word_is_found_out(source):
    assert complaints(source)


@pytest.mark.parametrize(
    "source",
    [
        "_REACH = 0.1  # judgement: of one step\n",
        "# fitted: benchmarks/quality.py\n# on hartmann6d\n_REACH = 0.1\n",
        "# judgement: all of them\n_FAR = 9.0\n_REACH = 0.1  # of one step\n",
        "_EFFORTS = (\n    (60, 1e-3),  # derived: from the first\n)\n",
        "_LOGS = ('mean', 'noise')\n",
        "Array = Literal[3]\n",
        "class Calibration:\n    slope: float = 1.0\n    shift: float = 0.0\n",
        "class Adaptive:\n    # judgement\n    usual: float = 0.9\n    raised: float = 0.97\n",
        "def half(x, k=2):\n    return -0.5 * x**2.0 + 10.0**-k + x[:60]\n",
    ],
)
def test_a_number_with_a_word_is_allowed(source):
    assert complaints(source) == []
