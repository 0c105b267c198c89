"""How the threads of a command wait: asleep, so that a busy machine does not bring it to a halt."""

import os
from collections.abc import MutableMapping

# What the OpenMP of torch (GNU's, LLVM's or Intel's) is told about waiting.
_POLICIES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def wait_asleep(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let the threads of torch sleep while they wait, unless somebody has said otherwise.

    By default they spin for milliseconds between two pieces of work. Beside other busy processes a
    thread that spins keeps the one it waits for from its core: a training takes many times as long.
    Read when torch is loaded, so this comes before.

    Example:
        >>> own = {}
        >>> wait_asleep(own)
        >>> own
        {'OMP_WAIT_POLICY': 'PASSIVE'}
    """
    if not any(name in environment for name in _POLICIES):
        environment["OMP_WAIT_POLICY"] = "PASSIVE"
