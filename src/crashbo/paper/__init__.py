"""The paper's experiments: its methods on its problems, many times over. May import the public API and `problems`."""
