import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from censafe.privacy.keys import entropy
from censafe.privacy.keys.entropy import REKEY_BYTES, SystemWords

FORK = """
import os
from censafe.privacy.keys.entropy import SystemWords
stream = SystemWords()
stream.words(5)
readers = []
for _ in range(3):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, stream.words(2).tobytes().hex().encode())
        os._exit(0)
    readers.append(reader)
print(stream.words(2).tobytes().hex())
for reader in readers:
    print(os.read(reader, 100).decode())
"""


def ctr(seed: bytes, size: int) -> bytes:
    return Cipher(algorithms.AES(seed[:32]), modes.CTR(seed[32:])).encryptor().update(bytes(size))


def test_stream_is_counter_mode_and_replaces_its_key_from_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    seed = bytes(range(48))
    monkeypatch.setattr(entropy.os, "urandom", lambda size: seed[:size])
    first = ctr(seed, REKEY_BYTES + 48)
    expected = first[:REKEY_BYTES] + ctr(first[REKEY_BYTES:], 80)
    stream = SystemWords()
    pieces = [stream.words(count) for count in (1, 0, 1000, REKEY_BYTES // 8 - 1001 + 3, 7)]
    assert expected == b"".join(piece.tobytes() for piece in pieces)


def test_children_of_a_fork_continue_with_fresh_words() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, check=True
    )
    lines = done.stdout.split()
    assert [len(line) for line in lines] == [32, 32, 32, 32]
    assert len(set(lines)) == 4


def test_the_process_is_compared_on_every_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entropy.os, "urandom", lambda size: bytes(size))
    stream = SystemWords()
    start = stream.words(4).tolist()
    assert stream.words(4).tolist() != start
    monkeypatch.setattr(entropy.os, "getpid", lambda: -7)
    assert stream.words(4).tolist() == start  # the same entropy gives the same restart


def test_processes_started_together_differ() -> None:
    code = (
        "from censafe.privacy.keys.entropy import SystemWords; print(SystemWords().words(2).tobytes().hex())"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    lines = [process.communicate()[0].strip() for process in both]
    assert [len(line) for line in lines] == [32, 32]
    assert lines[0] != lines[1]


def test_threads_share_a_stream_without_a_repeated_word() -> None:
    stream = SystemWords()
    found: list[np.ndarray] = []

    def work() -> None:
        found.extend([stream.words(count) for count in (1, 100, 5000, 33)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(found)
    assert len(np.unique(words)) == len(words) == 8 * 5134


def test_a_closed_stream_and_a_negative_count_are_refused() -> None:
    stream = SystemWords()
    with pytest.raises(ValueError, match="at least 0"):
        stream.words(-1)
    stream.words(1)
    stream.close()
    with pytest.raises(ValueError, match="closed"):
        stream.words(1)
    assert os.getpid() > 0
