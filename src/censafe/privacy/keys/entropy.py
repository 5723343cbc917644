"""Secrets in memory, wiped on close, and the seal of the types that hold them."""

from __future__ import annotations

from typing import NoReturn, TypeVar

SECRET_BYTES = 32
_T = TypeVar("_T")


class Secret:
    """A 32-byte secret held in one mutable buffer, which ``close`` overwrites with zeros.

    Args:
        data: buffer that the object takes over; the caller keeps no other copy.
    """

    __slots__ = ("_closed", "_data")

    def __init__(self, data: bytearray) -> None:
        if len(data) != SECRET_BYTES:
            raise ValueError(f"a key has {SECRET_BYTES} bytes, not {len(data)}")
        self._data = data
        self._closed = False

    def reveal(self) -> bytearray:
        """The buffer itself, for the cipher; ValueError once closed."""
        if self._closed:
            raise ValueError("the key is closed; its bytes are gone")
        return self._data

    def close(self) -> None:
        """Overwrite the buffer with zeros; later calls do nothing."""
        self._data[:] = bytes(len(self._data))
        self._closed = True

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled or copied")


def sealed(cls: type[_T]) -> type[_T]:
    """Class decorator: instances cannot be pickled, copied or printed, and the class has no subclasses.

    A subclass would pass ``isinstance`` checks; refusing it at its definition leaves exact types only.
    """
    name = cls.__name__

    def refuse(self: object, *_: object) -> NoReturn:
        raise TypeError(f"a {name} cannot be pickled or copied")

    def refuse_subclass(**_: object) -> NoReturn:
        raise TypeError(f"{name} cannot be subclassed")

    for method in ("__reduce__", "__reduce_ex__", "__getstate__", "__copy__", "__deepcopy__"):
        setattr(cls, method, refuse)
    setattr(cls, "__init_subclass__", staticmethod(refuse_subclass))  # noqa: B010
    setattr(cls, "__repr__", lambda self: f"<{name}>")  # noqa: B010
    return cls
