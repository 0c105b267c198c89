"""What a node of Ray does first: code that is sent there, as its regaug may be another, or none.

Nothing is imported from regaug before it is known which one it is.
"""

from typing import Any


def begin(places: list[Any], content: bytes, wanted: str) -> dict[str, Any]:
    """Do a task, if this node has the regaug that is wanted.

    Args:
        places: Where Ray keeps the worker.
        content: The task, pickled: what it is made of may not be known here.
        wanted: The version.

    Returns:
        The ``host``, its ``versions``, and the ``records`` of the task; what is ``missing`` where
        regaug cannot be imported.
    """
    import socket

    host = socket.gethostname()
    try:
        from regaug.training.results import versions
    except ImportError as error:
        return {"host": host, "missing": str(error)}
    known = versions()
    found = {"host": host, "versions": known}
    if known["regaug"] != wanted:
        return found
    from regaug.runs.ray_worker import do_task

    return {**found, "records": do_task(places[0], content)}
