"""Handles Ctrl-C during the import of goodgain (about a second). After the import, the command handles signals."""

import os
import signal
import sys
from itertools import pairwise

#: The message and the exit status of the program after Ctrl-C.
INTERRUPTED, INTERRUPTED_STATUS = "interrupted", 128 + signal.SIGINT


def _end_program_at_interrupt() -> None:
    """Let Ctrl-C end the goodgain command with a message of one line. In other programs, goodgain does not handle signals."""
    program = sys.argv[0] if sys.argv else ""
    is_script = program.rpartition("/")[2] == "goodgain" and program in sys.orig_argv
    is_module = program == "-m" and ("-m", "goodgain") in pairwise(sys.orig_argv)
    if (is_script or is_module) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def _end(*_: object) -> None:
    os.write(2, f"goodgain: {INTERRUPTED}\n".encode())
    os._exit(INTERRUPTED_STATUS)  # a module that is being imported could catch an exception


_end_program_at_interrupt()
