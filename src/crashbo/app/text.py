"""Numbers and counts as text. Imports nothing."""


def value_text(value: object, digits: int = 5) -> str:
    """A value as text: floats with this many significant digits and no zero below zero, None as the empty string."""
    return "" if value is None else f"{value + 0.0:.{digits}g}" if isinstance(value, float) else str(value)


def counted(count: int, one: str, many: str = "") -> str:
    """A count and what is counted: 1 trial, 2 trials."""
    return f"{count} {one if count == 1 else many or one + 's'}"
