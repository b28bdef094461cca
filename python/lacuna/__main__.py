"""`python3 -m lacuna COMMAND …`: the lacuna program."""

import os
import signal
import sys

from lacuna import _lacuna


def main() -> int:
    """Runs a command as the program does, and returns its exit code."""
    # Threads that wait must not spin long; the OpenMP library reads this before Python begins.
    if "OMP_WAIT_POLICY" not in os.environ and "GOMP_SPINCOUNT" not in os.environ:
        os.environ["GOMP_SPINCOUNT"] = "2000"
        os.execv(sys.executable, [sys.executable, "-m", "lacuna", *sys.argv[1:]])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    return _lacuna._run_program(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
