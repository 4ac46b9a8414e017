"""What tests in several rooms share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # deaths.py, for them and for the processes that they start
