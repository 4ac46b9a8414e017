"""The layers of DESIGN: an import goes to its own layer or one below, and the core needs NumPy and SciPy only."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import scipy

PACKAGE = Path(__file__).parents[1] / "src" / "crashbo"
FILES = sorted(PACKAGE.rglob("*.py"))

# Lowest first; what stands in one row may not import its neighbours. `lines` and `version` belong to all.
ROWS = (
    ("numerics",),
    ("models",),
    ("search",),
    ("strategies",),
    ("optimizer",),
    ("integrations", "problems", "paper"),
    ("app",),
)
HEIGHT = {layer: height for height, row in enumerate(ROWS) for layer in row} | {"lines": -1, "version": -1}
CORE = ("numerics", "models", "search", "strategies", "optimizer", "lines", "version")
# Problems and the paper's experiments see the public API alone: the rooms that it names, not those inside.
PUBLIC = ("optimizer", "search", "models", "lines", "version")
PUBLIC_ONLY = {"problems": PUBLIC, "paper": (*PUBLIC, "strategies", "problems")}
FOREIGN = {"numpy", "scipy", "crashbo"} | sys.stdlib_module_names


def layer_of(parts: tuple[str, ...]) -> str:
    """Layer of a module below crashbo, given as the parts of its dotted name; '' for the package itself."""
    return parts[0] if parts else ""


def module_parts(path: Path, root: Path) -> tuple[str, ...]:
    parts = path.relative_to(root).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imported(source: str, parts: tuple[str, ...], *, is_package: bool = False) -> set[str]:
    """Absolute dotted names that a module imports anywhere, functions and type checks included."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                own = ("crashbo", *parts)
                above = own[: len(own) - node.level + is_package]
                base = ".".join((*above, *filter(None, [base])))
            # `from crashbo import models` names a layer only with its last part.
            names |= {f"{base}.{alias.name}" for alias in node.names} if base == "crashbo" else {base}
    return names


def complaints(source: str, parts: tuple[str, ...], *, is_package: bool = False) -> list[str]:
    """What a module imports that its layer may not."""
    layer = layer_of(parts)
    found = []
    for name in sorted(imported(source, parts, is_package=is_package)):
        top, *rest = name.split(".")
        if top != "crashbo":
            if layer in (*CORE, "") and top not in FOREIGN:
                found.append(f"{layer or 'crashbo'} imports {top}")
            continue
        target = layer_of(tuple(rest))
        if target not in HEIGHT:
            if layer in CORE or target not in PACKAGE_NAMES:
                found.append(f"{layer or 'crashbo'} imports {name}, which is no layer")
        elif layer in PUBLIC_ONLY:
            if target != layer and target not in PUBLIC_ONLY[layer]:
                found.append(f"{layer} imports {name} past the public API")
        elif layer in HEIGHT and target != layer and HEIGHT[target] >= HEIGHT[layer]:
            found.append(f"{layer} imports {name} from above")
    return found


# Names of the public API, which the layers above the core may take from `crashbo` itself.
PACKAGE_NAMES = {"", "__version__"} | {
    alias.asname or alias.name
    for node in ast.walk(ast.parse((PACKAGE / "__init__.py").read_text()))
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(PACKAGE)) for path in FILES])
def test_a_module_imports_only_its_own_layer_or_one_below(path):
    parts = module_parts(path, PACKAGE)
    assert complaints(path.read_text(), parts, is_package=path.name == "__init__.py") == []


@pytest.mark.parametrize("path", sorted(PACKAGE.iterdir()), ids=lambda path: path.name)
def test_everything_in_the_package_is_a_layer_of_the_design(path):
    known = {*HEIGHT, "__init__", "__main__", "py", "__pycache__"}
    assert path.name.split(".")[0] in known


@pytest.mark.parametrize(
    ("parts", "source"),
    [
        (("numerics", "linalg"), "from crashbo.models import ep"),
        (("numerics", "linalg"), "from crashbo import models"),
        (("numerics", "linalg"), "from ..models.ep import Sites"),
        (("models", "ep"), "def f():\n    import crashbo.optimizer"),
        (("models", "ep"), "import pandas as pd"),
        (("models", "ep"), "from sklearn.gaussian_process import kernels"),
        (("models", "ep"), "from crashbo import Optimizer"),
        (("models", "ep"), "from crashbo.helpers import thing"),
        (("problems", "toy"), "from crashbo.numerics import kernels"),
        (("integrations", "optuna"), "from crashbo.app import plots"),
        (("integrations", "optuna"), "from crashbo.problems import get"),
    ],
)
def test_an_import_from_above_is_found_out(parts, source):
    assert complaints(source, parts)


@pytest.mark.parametrize(
    ("parts", "source"),
    [
        (("numerics", "linalg"), "import os\nimport scipy.linalg\nfrom numpy.typing import NDArray"),
        (("models", "ep"), "from crashbo.models.steps import Steps\nfrom ..numerics import linalg\nfrom . import fit"),
        (("app", "plots"), "import matplotlib.pyplot\nfrom crashbo.optimizer import trials"),
        (("problems", "toy"), "from crashbo import __version__\nfrom crashbo.problems import base"),
    ],
)
def test_an_import_from_below_is_allowed(parts, source):
    assert complaints(source, parts) == []


# Where a third party comes in: nobody else imports it.
DOORS = {
    "matplotlib": {"app/plots.py"},
    "PIL": {"app/animation.py"},
    "mujoco": {"problems/solo8/engine.py"},
    "optuna": {f"integrations/optuna/{path.name}" for path in (PACKAGE / "integrations" / "optuna").glob("*.py")},
    "sqlalchemy": {"integrations/optuna/atomic.py", "integrations/optuna/closing.py"},
    "optuna_dashboard": {"integrations/optuna/dashboard.py"},
    "plotly": {"integrations/optuna/dashboard.py"},
    "fastapi": {"app/server/api.py"},
    "uvicorn": {"app/server/serve.py"},
    "torch": {"integrations/botorch.py"},
    "botorch": {"integrations/botorch.py"},
    "gpytorch": {"integrations/botorch.py"},
}


def third_parties(path: Path) -> set[str]:
    parts = module_parts(path, PACKAGE)
    return {name.split(".")[0] for name in imported(path.read_text(), parts, is_package=path.name == "__init__.py")}


@pytest.mark.parametrize("library", DOORS)
def test_a_third_party_has_one_door(library):
    assert {str(path.relative_to(PACKAGE)) for path in FILES if library in third_parties(path)} <= DOORS[library]


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
