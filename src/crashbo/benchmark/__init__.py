"""The field's benchmark: methods on families of crash problems, and what is measured of them.

May import the public API, `problems` and `campaigns`. docs/benchmark.md has the definitions.
"""
