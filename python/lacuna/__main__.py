"""`python3 -m lacuna [--import MODULE …] COMMAND …`: the lacuna program.

--import: a module's name or a file of Python, which registers names that configurations use.
"""

import os
import signal
import sys
from typing import List, Tuple

from lacuna import _lacuna, registry


def _split(arguments: List[str]) -> Tuple[List[str], List[str]]:
    """What is to be imported, and the program's own arguments."""
    modules = []
    while len(arguments) > 1 and arguments[0] == "--import":
        modules.append(arguments[1])
        arguments = arguments[2:]
    return modules, arguments


def main() -> int:
    """Runs a command as the program does, and returns its exit code."""
    # Threads that wait must not spin long; the OpenMP library reads this before Python begins.
    if "OMP_WAIT_POLICY" not in os.environ and "GOMP_SPINCOUNT" not in os.environ:
        os.environ["GOMP_SPINCOUNT"] = "2000"
        os.execv(sys.executable, [sys.executable, "-m", "lacuna", *sys.argv[1:]])
    modules, arguments = _split(sys.argv[1:])
    try:
        registry.import_names(modules)
    except (ImportError, OSError, SyntaxError, _lacuna.StateError) as error:
        print(f"error: --import: {error}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    return _lacuna._run_program(arguments)


if __name__ == "__main__":
    sys.exit(main())
