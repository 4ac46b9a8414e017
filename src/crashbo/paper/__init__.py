"""The paper's experiments: its methods on its problems, with repeats. May import the public API and `problems`."""
