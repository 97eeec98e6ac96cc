"""Text from outside, such as names of files and classes, made safe for where it is shown."""

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def printable(text: str, *, lines: bool = False) -> str:
    """Without what would steer a terminal, turn the direction of writing or break an encoding; `lines` may end."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or (lines and c == "\n") else "�" for c in text)


def spreadsheet_cell(text: str) -> str:
    """Spreadsheets run what begins like a formula, also behind spaces: an apostrophe says that it is text."""
    text = printable(text)
    return f"'{text}" if text.lstrip().startswith(FORMULA) or text.startswith("�") else text
