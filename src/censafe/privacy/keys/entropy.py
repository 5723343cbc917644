"""Random words in bulk, AES-256 in counter mode keyed by the operating system, and secrets in memory, wiped on close."""

from __future__ import annotations

import os
import threading
from typing import NoReturn, TypeVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

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


REKEY_BYTES = 1 << 24
_KEY_BYTES = 32
_COUNTER_BYTES = 16
_SEED_BYTES = _KEY_BYTES + _COUNTER_BYTES
_WORD_BYTES = 8
_PIECE_BYTES = 1 << 18


@sealed
class SystemWords:
    """A stream of 64-bit words that restarts from fresh entropy after a fork and replaces its own key.

    Every 2^24 bytes the next 48 bytes of the stream become key and counter, so that a memory image tells
    nothing about earlier words. Threads may share one object.

    Example:
        >>> SystemWords().words(3).dtype
        dtype('uint64')
    """

    __slots__ = ("_left", "_locks", "_process", "_stream")

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}
        self._process = 0
        self._left = 0
        self._stream: CipherContext | None = None

    def words(self, count: int) -> NDArray[np.uint64]:
        """Fresh words.

        Returns:
            uint64, shape (count,).
        """
        if count < 0:
            raise ValueError("a number of words is at least 0")
        # A lock that another thread held at a fork stays locked in the child, so every process has its own.
        with self._locks.setdefault(os.getpid(), threading.Lock()):
            return self._fill(count)

    def close(self) -> None:
        """Forget the stream; the object is of no use afterwards."""
        with self._locks.setdefault(os.getpid(), threading.Lock()):
            self._stream = None
            self._process = -1

    def _fill(self, count: int) -> NDArray[np.uint64]:
        if self._process == -1:
            raise ValueError("the stream of words is closed")
        stream = self._stream
        if stream is None or self._process != os.getpid():
            stream = self._restart(bytearray(os.urandom(_SEED_BYTES)))
        size = count * _WORD_BYTES
        buffer = np.empty(count + _COUNTER_BYTES // _WORD_BYTES, dtype=np.uint64)
        view = buffer.view(np.uint8).data
        zeros = bytes(min(size, _PIECE_BYTES))
        done = 0
        while done < size:
            if not self._left:
                seed = bytearray(_SEED_BYTES + _COUNTER_BYTES)
                stream.update_into(bytes(_SEED_BYTES), seed)
                stream = self._restart(seed)
            piece = min(size - done, self._left, _PIECE_BYTES)
            stream.update_into(memoryview(zeros)[:piece], view[done:])
            done += piece
            self._left -= piece
        return buffer[:count]

    def _restart(self, seed: bytearray) -> CipherContext:
        """Key the stream with the first 48 bytes of ``seed``, which is wiped."""
        key, counter = seed[:_KEY_BYTES], seed[_KEY_BYTES:_SEED_BYTES]
        self._stream = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()
        self._process = os.getpid()
        self._left = REKEY_BYTES
        for part in (seed, key, counter):
            part[:] = bytes(len(part))
        return self._stream
