"""What a machine lacks, in a sentence: memory or space that no part of regaug has asked for."""

import errno

_TEXTS = ("cannot allocate memory", "failed to map segment", "out of memory", "can't allocate")


def say_lack(error: BaseException) -> str | None:
    """Return what is to be done about an error for want of memory or space; None for others.

    A library that cannot be loaded for want of memory says so in an ``ImportError``.

    Example:
        >>> say_lack(ImportError("a.so: failed to map segment from shared object"))[:41]
        'There is not enough memory, or a limit fo'
    """
    chain: BaseException | None = error
    for _ in range(10):
        if chain is None:
            return None
        number = getattr(chain, "errno", None)
        has_words = any(words in str(chain).lower() for words in _TEXTS)
        if isinstance(chain, MemoryError) or number == errno.ENOMEM or has_words:
            return (
                "There is not enough memory, or a limit forbids it (ulimit -v). Use fewer jobs "
                "(-j), a smaller table, or a higher limit. What was finished is kept."
            )
        if number in (errno.ENOSPC, errno.EDQUOT):
            place = getattr(chain, "filename", None)
            where = f" where {place} is" if place else ""
            return f"No space is left on the disk{where}. Free some, and run the command again."
        chain = chain.__cause__ or chain.__context__
    return None
