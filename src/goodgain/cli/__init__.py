"""The goodgain command: the program, and a file for each group of its commands."""

import signal
import threading

__all__ = ["main"]


def main() -> None:
    """Run the program, and end this process with its exit status (`goodgain.cli.ending.run_to_end`).

    Ctrl-C while the libraries are loaded, which takes half a second, ends the process as it does in C, without a traceback.
    """
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from goodgain.cli.program import main as run
    finally:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL and is_default:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    run()
