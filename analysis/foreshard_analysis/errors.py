"""What can be wrong with what the user gave, and the exit codes, which are those of all of Foreshard's commands."""

from enum import IntEnum


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    OUTSIDE = 4
    """A comparison that cannot hold: the two plans differ."""
    BAD_INPUT = 5
    """An input file is unreadable or has the wrong format."""


class InputError(Exception):
    """The user's mistake: what is wrong with the value seen, what was expected, and what to do unless it is plain."""

    def __init__(self, code: ExitCode, what: str, expected: str, remedy: str = "") -> None:
        super().__init__(f"{what}; expected: {expected}")
        self.code = code
        self.what = what
        self.expected = expected
        self.remedy = remedy

    def block(self, program: str) -> str:
        """The message as Foreshard's commands print it."""
        lines = [f"{program}: error: {self.what}", f"  expected: {self.expected}", f"  where:  exit code {self.code:d}"]
        return "\n".join(lines + ([f"  remedy: {self.remedy}"] if self.remedy else []))


def bad_file(path: object, what: str, expected: str, remedy: str = "") -> InputError:
    return InputError(ExitCode.BAD_INPUT, f"{path}: {what}", expected, remedy)


def usage(what: str, expected: str, remedy: str = "") -> InputError:
    return InputError(ExitCode.USAGE, what, expected, remedy)
