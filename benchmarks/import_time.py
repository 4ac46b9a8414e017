"""The time of `import crashbo` in a fresh interpreter, compared with the parts of NumPy and SciPy that it needs.

python benchmarks/import_time.py [--runs 10]
"""

import argparse
import subprocess
import sys

import numpy as np

MODULES = ("numpy", "scipy.special, scipy.linalg", "crashbo")
SCRIPT = "import time; began = time.perf_counter(); import {}; print(time.perf_counter() - began)"


def seconds(module: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(module)],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    print(f"import of                        median of {runs}, least")
    for module in MODULES:
        seconds(module)  # the first run writes byte code and fills the disk cache
        times = [seconds(module) for _ in range(runs)]
        print(f"{module:<34}{1e3 * np.median(times):5.0f} ms   {1e3 * min(times):5.0f} ms")


if __name__ == "__main__":
    main()
