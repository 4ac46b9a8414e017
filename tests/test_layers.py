"""The layers: an import goes to its own room or one below, in no circle, and the core needs NumPy and SciPy only."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy
import pytest
import scipy

import crashbo
from crashbo import lazy

PACKAGE = Path(__file__).parents[1] / "src" / "crashbo"

# The rooms of a package, files and folders, lowest first; what stands in one row may not import its neighbours. A new
# file goes into the lowest row that lies above everything it imports. An `__init__` in the lowest row stays empty.
ROWS = {
    "crashbo": (
        ("extras", "lazy", "lines", "processes", "version"),  # belong to all
        ("workers",),
        ("numerics",),
        ("models",),
        ("search",),
        ("strategies",),
        ("optimizer",),
        ("problems",),
        ("__init__",),  # the public API
        ("campaigns",),
        ("benchmark", "integrations", "paper"),
        ("app",),
    ),
    "crashbo.app": (
        ("__init__", "html_page", "launcher", "run_options", "run_progress", "sight", "states", "text"),
        ("overview", "trial_table"),
        ("subject",),
        ("animation", "bench", "blame", "demo", "glance", "illustration", "reliability"),
        ("gathered", "jump_report", "plots", "results", "slices"),
        ("benchmark", "jump_plots", "result_plots", "sketches", "study_plots"),
        ("demo_files", "report", "reproduce"),
        ("notebook",),
        ("server",),
        ("compare_demo",),
        ("commands",),
        ("cli",),
    ),
    "crashbo.app.benchmark": (
        ("__init__", "tables", "words"),
        ("grids", "plots"),
        ("report",),
        ("campaign",),
    ),
    "crashbo.optimizer.tables": (("__init__", "columns"), ("cells",), ("sheets",), ("rows",), ("old_data",)),
    "crashbo.integrations": (("__init__",), ("botorch", "jupyter", "optuna", "pandas")),
    "crashbo.integrations.optuna": (
        ("atomic", "keys", "memo", "spaces", "studies", "troubles"),
        ("clock", "comparing", "corrections", "settings", "writing"),
        ("deaths",),
        ("stored",),
        ("snapshot",),
        ("memories",),
        ("proposer", "sampler"),
        ("insight", "ledger", "telling"),
        ("dashboard",),
        ("__init__",),
    ),
}

# What a layer may import from elsewhere; those that are not named here have doors, below.
_STANDARD = frozenset(sys.stdlib_module_names) | {"crashbo"}
_CORE = _STANDARD | {"numpy", "scipy"}
FOREIGN = (
    dict.fromkeys(("extras", "lazy", "lines", "processes", "version"), _STANDARD)
    | {"workers": _STANDARD | {"cloudpickle"}}
    | dict.fromkeys(("numerics", "models", "search", "strategies", "optimizer", "__init__"), _CORE)
)

# These layers see the public API alone, name by name. `problems` takes a name from the room that defines it, since
# `crashbo` itself imports `problems`.
PUBLIC_ONLY = ("problems", "paper", "benchmark")
FOR_ALL = tuple(f"crashbo.{room}" for room in ROWS["crashbo"][0])


def module_of(path: str) -> str:
    """Dotted name of a file, given by its path below the package."""
    parts = path.removesuffix(".py").split("/")
    return ".".join(("crashbo", *(parts[:-1] if parts[-1] == "__init__" else parts)))


SOURCES = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
MODULES = {module_of(path) for path in SOURCES}


def imports(path: str, source: str) -> set[tuple[str, str]]:
    """Module and name of every import, wherever it is hidden; no name where the module itself is imported."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {(_base(path, node), alias.name) for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            found |= {(word.value, "") for word in node.args[:1] if isinstance(word, ast.Constant)}
    return found


def tops(path: str, source: str) -> set[str]:
    """Packages that a file imports from."""
    return {base.split(".")[0] for base, _ in imports(path, source)}


def _base(path: str, node: ast.ImportFrom) -> str:
    """Absolute name of the module that names are imported from."""
    own = module_of(path).split(".") + ["__init__"] * path.endswith("__init__.py")
    above = own[: len(own) - node.level] if node.level else []
    return ".".join([*above, *filter(None, [node.module])])


def targets(path: str, source: str, modules: set[str] = MODULES) -> set[str]:
    """Modules of crashbo that a file imports; `from package import module` means the module, not the package."""
    pairs = {(base, name) for base, name in imports(path, source) if base.split(".")[0] == "crashbo"}
    return {f"{base}.{name}" if f"{base}.{name}" in modules else base for base, name in pairs}


def room(package: str, module: str) -> str | None:
    """Which room of a package a module is in, or None if it is in none."""
    if module == package:
        return "__init__"
    return module.removeprefix(f"{package}.").split(".")[0] if module.startswith(f"{package}.") else None


def height(package: str, name: str | None) -> int | None:
    return next((height for height, row in enumerate(ROWS[package]) if name in row), None)


def complaints(path: str, source: str) -> list[str]:
    """What a file imports that its place does not allow."""
    module = module_of(path)
    layer = room("crashbo", module)
    strange = tops(path, source) - FOREIGN[layer] if layer in FOREIGN else ()
    found = [f"{module} imports {top}, which is foreign to its layer" for top in sorted(strange)]
    for target in sorted(targets(path, source)):
        if target not in MODULES:
            found.append(f"{module} imports {target}, which is no module")
        for package in ROWS:
            here, there = room(package, module), room(package, target)
            low, high = height(package, there), height(package, here)
            if here != there and low is not None and high is not None and low >= high:
                found.append(f"{module} imports {target}, which is not below it in ROWS[{package!r}]")
    return found


@pytest.mark.parametrize("path", SOURCES)
def test_a_module_imports_only_its_own_room_or_one_below(path):
    assert complaints(path, SOURCES[path]) == []


def unlike(rows: tuple[tuple[str, ...], ...], rooms: set[str]) -> list[str]:
    """Where a package's rows and its rooms differ, and what to do."""
    listed = [name for row in rows for name in row]
    return [
        *(f"{name} stands in no row: add it to ROWS, above everything it imports" for name in rooms - set(listed)),
        *(f"{name} is not there any more: take it out of ROWS" for name in set(listed) - rooms),
        *(f"{name} stands in two rows: leave one" for name in {name for name in listed if listed.count(name) > 1}),
    ]


def rooms_of(package: str) -> set[str]:
    return {name for module in MODULES if (name := room(package, module))}


@pytest.mark.parametrize("package", ROWS)
def test_every_room_of_a_package_stands_in_one_row(package):
    assert unlike(ROWS[package], rooms_of(package)) == []


@pytest.mark.parametrize(
    ("rooms", "words"),
    [
        ({"a", "b", "c", "new"}, "new stands in no row: add it"),
        ({"a", "b"}, "c is not there any more: take it out"),
        ({"a", "b", "c"}, "b stands in two rows"),
    ],
)
def test_a_room_that_is_new_or_gone_is_found_out(rooms, words):
    rows = (("a", "b"), ("b", "c")) if "two" in words else (("a",), ("b", "c"))
    (complaint,) = unlike(rows, rooms)
    assert complaint.startswith(words)


@pytest.mark.parametrize("path", sorted(PACKAGE.iterdir()), ids=lambda path: path.name)
def test_everything_in_the_package_is_a_room_of_the_design(path):
    assert path.name.split(".")[0] in rooms_of("crashbo") | {"py", "__pycache__"}


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("numerics/linalg.py", "from crashbo.models import ep"),
        ("numerics/linalg.py", "from crashbo import models"),
        ("numerics/linalg.py", "from ..models.ep import Sites"),
        ("numerics/__init__.py", "from ..models.ep import Sites"),
        ("models/ep.py", "def f():\n    import crashbo.optimizer"),
        ("models/ep.py", "import importlib\nimportlib.import_module('crashbo.optimizer')"),
        ("models/ep.py", "import pandas as pd"),
        ("models/ep.py", "from sklearn.gaussian_process import kernels"),
        ("models/ep.py", "from crashbo import Optimizer"),
        ("models/ep.py", "from crashbo.helpers import thing"),
        ("lines.py", "import numpy"),
        ("lines.py", "from crashbo import version"),
        ("problems/toy.py", "from crashbo import Float"),
        ("problems/toy.py", "import crashbo"),
        ("integrations/botorch.py", "from crashbo.app import plots"),
        ("integrations/botorch.py", "from crashbo.paper import runs"),
    ],
)
def test_an_import_from_above_is_found_out(path, source):
    assert complaints(path, source)


@pytest.mark.parametrize("package", ROWS)
def test_in_every_package_an_import_of_a_neighbour_or_from_above_is_found_out(package):
    rows = [[name for name in row if name != "__init__"] for row in ROWS[package]]
    rows = [row for row in rows if row]
    pairs = [(row[0], above[-1]) for row, above in pairwise(rows)]
    pairs += [(row[0], row[-1]) for row in rows if len(row) > 1]
    assert pairs
    for low, high in pairs:
        path = f"{package}.{low}".removeprefix("crashbo.").replace(".", "/")
        path += "/some.py" if f"{package}.{low}" in MODULES and f"{path}.py" not in SOURCES else ".py"
        (complaint,) = complaints(path, f"if TYPE_CHECKING:\n    from {package}.{high} import thing")
        assert complaint.endswith(f"imports {package}.{high}, which is not below it in ROWS[{package!r}]")


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("numerics/linalg.py", "import os\nimport scipy.linalg\nfrom numpy.typing import NDArray"),
        ("models/ep.py", "from crashbo.models.gpcr import GPCR\nfrom ..numerics import linalg\nfrom . import latent"),
        ("models/ep.py", "from crashbo.lines import Lines\nfrom crashbo import version"),
        ("app/plots.py", "import matplotlib.pyplot\nfrom crashbo.optimizer import optimizer"),
        ("problems/toy.py", "from crashbo.version import __version__\nfrom crashbo.problems import problem"),
        ("paper/toy.py", "from crashbo import Float, problems\nimport crashbo"),
    ],
)
def test_an_import_from_below_is_allowed(path, source):
    assert complaints(path, source) == []


def test_no_two_modules_define_a_class_of_the_same_name():
    homes: dict[str, list[str]] = {}
    for path, source in SOURCES.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def graph(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """What every module imports by its own words; that a package's `__init__` runs first, too, makes no circle."""
    modules = {module_of(path) for path in sources}
    return {module_of(path): targets(path, source, modules) & modules for path, source in sources.items()}


def circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import one another, directly or by way of others: strongly connected components."""
    reached = {module: _reachable(module, arrows) for module in arrows}
    groups = {frozenset(m for m in found if module in reached[m]) for module, found in reached.items()}
    return sorted(sorted(group) for group in groups if group)


def _reachable(module: str, arrows: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = set(arrows[module])
    while ahead:
        found |= ahead
        ahead = set().union(*(arrows[m] for m in ahead)) - found
    return found


def test_no_modules_import_one_another_in_a_circle():
    assert circles(graph(SOURCES)) == []


@pytest.mark.parametrize(
    ("sources", "circle"),
    [
        ({"a.py": "import crashbo.b", "b.py": "def f():\n    from crashbo.a import x"}, ["a", "b"]),
        ({"a.py": "if TYPE_CHECKING:\n    from crashbo.b import x", "b.py": "import crashbo.a as a"}, ["a", "b"]),
        ({"a.py": "try:\n    from crashbo import b\nexcept ImportError: ...", "b.py": "from . import a"}, ["a", "b"]),
        ({"a.py": "import crashbo.b", "b.py": "importlib.import_module('crashbo.a')"}, ["a", "b"]),
        ({"a.py": "import crashbo.b", "b.py": "import crashbo.c", "c.py": "import crashbo.a"}, ["a", "b", "c"]),
        ({"p/__init__.py": "from .a import A", "p/a.py": "from crashbo.p import B"}, ["p", "p.a"]),
        ({"p/__init__.py": "", "p/a.py": "from . import b", "p/b.py": "from .a import x"}, ["p.a", "p.b"]),
        ({"p/__init__.py": "", "p/a.py": "from ..q import x", "q.py": "from crashbo.p import a"}, ["p.a", "q"]),
        ({"p/__init__.py": "from crashbo.p import A"}, ["p"]),
    ],
)
def test_a_hidden_circle_is_found_out(sources, circle):
    others = {"__init__.py": "from crashbo import z", "y.py": "import crashbo.z", "z.py": "import os"}
    assert circles(graph(sources | others)) == [[f"crashbo.{module}" for module in circle]]


@pytest.mark.parametrize(
    "sources",
    [
        {"p/__init__.py": "from .a import A\nfrom .b import B", "p/a.py": "from crashbo.p import b", "p/b.py": ""},
        {"p/__init__.py": "from crashbo.p.a import A", "p/a.py": "import crashbo.p.b", "p/b.py": "import os"},
        {"__init__.py": "from crashbo import a", "a.py": "import crashbo.b", "b.py": "", "c.py": "import crashbo"},
        {"a.py": "import crashbo.c", "b.py": "import crashbo.a\nimport crashbo.c", "c.py": ""},
    ],
)
def test_a_package_that_gathers_its_modules_makes_no_circle(sources):
    assert circles(graph({"__init__.py": ""} | sources)) == []


def public_names(module: ModuleType) -> set[str]:
    """What crashbo, or one of the modules that it names, offers to all; of a module without a list, what it defines."""
    named = [getattr(crashbo, name) for name in crashbo.__all__] + [crashbo.problems.families]
    if module is not crashbo and module not in named:
        return set()
    own = {name for name, thing in vars(module).items() if getattr(thing, "__module__", None) == module.__name__}
    return set(getattr(module, "__all__", {name for name in own if not name.startswith("_")}))


def is_public(module: str, name: str) -> bool:
    """Whether a name in a module is one of the public API's, or is known to all by that name."""
    home = import_module(module)
    known = name in crashbo.__all__ and getattr(home, name, None) is getattr(crashbo, name)
    return known or name in public_names(home)


def taken(path: str, source: str) -> Iterator[tuple[str, str]]:
    """Module of crashbo and name for all that a source takes out of one, by an import or by a dot."""
    locals_: dict[str, str] = {}  # names that stand for modules
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in (alias for alias in node.names if alias.name.split(".")[0] == "crashbo"):
                locals_[alias.asname or "crashbo"] = alias.name if alias.asname else "crashbo"
                parts = alias.name.split(".")
                yield from ((".".join(parts[:i]), parts[i]) for i in range(1, len(parts)))
        elif isinstance(node, ast.ImportFrom) and (base := _base(path, node)).split(".")[0] == "crashbo":
            for alias in node.names:
                yield base, alias.name
                if (module := _module_in(base, alias.name)) is not None:
                    locals_[alias.asname or alias.name] = module
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (module := _module_at(node.value, locals_)) is not None:
            yield module, node.attr


def _module_in(module: str, name: str) -> str | None:
    """Full name of what a module knows by a name, if that is a module of crashbo, too."""
    if f"{module}.{name}" in MODULES:
        return f"{module}.{name}"
    found = getattr(crashbo, name, None) if module == "crashbo" else None  # `stopping` lives elsewhere
    return found.__name__ if isinstance(found, ModuleType) else None


def _module_at(node: ast.expr, locals_: Mapping[str, str]) -> str | None:
    """The module that an expression such as `crashbo.strategies` stands for, if it does."""
    if isinstance(node, ast.Name):
        return locals_.get(node.id)
    above = _module_at(node.value, locals_) if isinstance(node, ast.Attribute) else None
    return _module_in(above, node.attr) if above is not None else None


def trespasses(path: str, source: str) -> list[str]:
    """What a file of problems or paper takes that is neither its layer's own nor the public API's."""
    own = f"crashbo.{path.split('/')[0]}"
    return sorted(
        f"{path} takes {name} of {module}, which is not in crashbo's public API"
        for module, name in set(taken(path, source))
        if not (room(own, module) or module in FOR_ALL or _module_in(module, name) in (own, *FOR_ALL))
        and not (module in MODULES and is_public(module, name))
    )


@pytest.mark.parametrize("path", [path for path in SOURCES if path.split("/")[0] in PUBLIC_ONLY])
def test_problems_and_paper_take_nothing_past_the_public_api(path):
    assert trespasses(path, SOURCES[path]) == []


@pytest.mark.parametrize(
    ("path", "source", "name"),
    [
        ("problems/toy.py", "from crashbo.numerics import kernels", "kernels of crashbo.numerics"),
        ("problems/toy.py", "from crashbo.search.space import Float, Params", "Params of crashbo.search.space"),
        ("problems/toy.py", "from ..optimizer.records import Side", "Side of crashbo.optimizer.records"),
        ("problems/toy.py", "def f():\n    from crashbo.search import space", "space of crashbo.search"),
        ("problems/toy.py", "from crashbo.strategies import plain", "plain of crashbo.strategies"),
        ("problems/toy.py", "from crashbo.search.space import *", "* of crashbo.search.space"),
        ("problems/toy.py", "from crashbo.search.nowhere import Float", "Float of crashbo.search.nowhere"),
        # A name of the API's that means something else there.
        ("problems/toy.py", "from crashbo.numerics import models", "models of crashbo.numerics"),
        ("paper/toy.py", "import crashbo.search.space", "search of crashbo"),
        ("paper/toy.py", "import crashbo.strategies.base as b", "base of crashbo.strategies"),
        ("paper/toy.py", "import crashbo\ncrashbo.search.space.Params", "search of crashbo"),
        ("paper/toy.py", "import crashbo as c\nc.strategies.plain", "plain of crashbo.strategies"),
        ("paper/toy.py", "from crashbo import strategies as s\ns.check", "check of crashbo.strategies"),
        ("paper/toy.py", "from crashbo import stopping\nstopping.time", "time of crashbo.optimizer.stopping"),
        ("paper/toy.py", "from crashbo.problems import solo8", "solo8 of crashbo.problems"),
        ("paper/toy.py", "from crashbo.problems.problem import vector", "vector of crashbo.problems.problem"),
    ],
)
def test_a_name_that_is_not_public_is_found_out(path, source, name):
    assert any(f"takes {name}, which" in complaint for complaint in trespasses(path, source))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("problems/toy.py", "from crashbo.search.space import Choice, Float, Int, Space"),
        ("problems/toy.py", "from crashbo.optimizer.records import Constraint, Crash, Outcome, Unmeasured"),
        ("problems/toy.py", "from crashbo.problems.problem import vector\nfrom crashbo.problems import solo8\nsolo8.x"),
        ("problems/toy.py", "import numpy as np\nnp.random.default_rng()"),
        ("paper/toy.py", "import crashbo\ncrashbo.Optimizer, crashbo.strategies.HighCost, crashbo.stopping.NoGain"),
        ("paper/toy.py", "from crashbo import Space, models, problems\nmodels.GP, problems.get, Space.of, Space._x"),
        ("paper/toy.py", "from crashbo.lines import Lines\nfrom crashbo import lines\nfrom crashbo.paper import runs"),
        ("paper/toy.py", "from crashbo.problems import Episode, Limit, Problem\nfrom crashbo.models import GPCR"),
    ],
)
def test_a_name_of_the_public_api_is_allowed(path, source):
    assert trespasses(path, source) == []


def test_what_is_found_by_name_lies_above_the_optimizer_and_is_there():
    for name in lazy.ABOVE.values():
        module, _, part = name.partition(":")
        assert module in MODULES
        assert height("crashbo", room("crashbo", module)) > height("crashbo", "optimizer")
        assert f"def {part}(" in SOURCES[_path(module)] or f"class {part}:" in SOURCES[_path(module)]


def _path(module: str) -> str:
    return module.removeprefix("crashbo.").replace(".", "/") + ".py"


def test_nobody_else_finds_a_module_by_a_name_that_no_reader_sees():
    """An import by a name that is made up at run time could go anywhere: there is one table of those."""
    calls = ("import_module", "__import__")
    found = {
        path
        for path, source in SOURCES.items()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in calls
        if not isinstance(node.args[0], ast.Constant)
    }
    assert found <= {"lazy.py", "benchmark/methods/__init__.py", "problems/__init__.py"}  # the latter: users' own


# Where a third party comes in: nobody else imports it.
DOORS = {
    "cloudpickle": {"workers.py"},
    "matplotlib": {"app/plots.py"},
    "pandas": {"integrations/pandas.py"},
    "IPython": {"integrations/jupyter.py"},
    "PIL": {"app/animation.py"},
    "mujoco": {"problems/solo8/engine.py"},
    "optuna": {f"integrations/optuna/{path.name}" for path in (PACKAGE / "integrations" / "optuna").glob("*.py")}
    | {"benchmark/methods/optuna.py"},
    "sqlalchemy": {f"integrations/optuna/{name}.py" for name in ("atomic", "troubles", "writing")},
    "optuna_dashboard": {"integrations/optuna/dashboard.py"},
    "plotly": {"integrations/optuna/dashboard.py"},
    "fastapi": {"app/server/api.py", "app/server/gate.py"},
    "uvicorn": {"app/server/serve.py"},
    "torch": {"integrations/botorch.py", "benchmark/methods/botorch.py"},
    "botorch": {"integrations/botorch.py", "benchmark/methods/botorch.py"},
    "gpytorch": {"integrations/botorch.py", "benchmark/methods/botorch.py"},
    "linear_operator": {"benchmark/methods/botorch.py"},
    "smac": {"benchmark/methods/smac.py"},
    "ConfigSpace": {"benchmark/methods/smac.py"},
    "PyNomad": {"benchmark/methods/nomad.py"},
}


@pytest.mark.parametrize("library", DOORS)
def test_a_third_party_has_one_door(library):
    users = {
        path for path, source in SOURCES.items() if library in {base.split(".")[0] for base, _ in imports(path, source)}
    }
    assert users <= DOORS[library]


LOADED = """
import sys
import scipy.special  # loads all of NumPy, and what that takes along where it is installed
before = set(sys.modules)
import crashbo
for name in set(sys.modules) - before:
    print(name, getattr(sys.modules[name], "__file__", None), sep="|")
"""


def test_importing_crashbo_loads_nothing_foreign_but_the_parts_of_numpy_and_scipy_it_needs():
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", LOADED], env=environment, capture_output=True, text=True, check=True)
    files = dict(line.split("|") for line in done.stdout.splitlines())
    assert "crashbo.models.gpcr" in files
    # By file, since compiled parts of SciPy register under top-level names of their own.
    homes = [PACKAGE, Path(numpy.__file__).parent, Path(scipy.__file__).parent]
    foreign = {
        name
        for name, file in files.items()
        if "-packages" in file and not any(Path(file).is_relative_to(home) for home in homes)
    }
    assert foreign == set()
    heavy = {
        "scipy.stats",
        "scipy.interpolate",
        "scipy.integrate",
        "mujoco",
        "matplotlib",
        "pandas",
        "optuna",
        "torch",
        "sklearn",
    }
    assert heavy.isdisjoint(files)
