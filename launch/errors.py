"""What counts as the user's problem: one sentence and exit code 2. Everything else is ours and shows its traceback."""

from __future__ import annotations

from corpus.documents.errors import BadInput, is_full_disk
from pretrain.interruption import REQUEUE_CODE, Interrupted


class LaunchError(ValueError):
    """A recipe, a run folder or a command line that cannot be used; the message says what to do."""


USER_ERRORS = (LaunchError, BadInput, Interrupted, OSError)
"""The exceptions that are answered with their message alone."""


def is_for_user(error: BaseException) -> bool:
    """Whether the message alone answers it: one of the above, or any library's way of saying that the disk is full."""
    return isinstance(error, USER_ERRORS) or is_full_disk(error)


def exit_code(error: BaseException) -> int:
    """2 for what the user must change; another one for what goes on when the same command is run again."""
    return REQUEUE_CODE if isinstance(error, Interrupted) else 2


def one_sentence(error: BaseException) -> str:
    """The message for the console; operating system errors get their file in front."""
    if is_full_disk(error):
        where = f" for {error.filename}" if isinstance(error, OSError) and error.filename else ""
        return f"no space left on the disk{where}; make room and run the same command again, it goes on from there"
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror.lower()}; check the path, its permissions and the free space"
    return str(error)
