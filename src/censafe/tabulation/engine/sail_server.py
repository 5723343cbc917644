"""CONFIDENTIAL. Sail in a process of its own, behind a socket that accepts only the process that started it.

Sail 0.7 listens on TCP alone and has no passwords, and what a session sends, it executes. So the process enters a network
namespace of its own, in which Sail is the only program; the one way in is a Unix socket in a private folder, whose connections are
accepted by process id and passed on. Where the system allows no namespace, the process says so and starts nothing, unless it is told
to listen on a port of the machine. It is started anew (exec), so that it never holds a key but that of a task it was sent.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000  # flags of unshare(2)
_SET_FLAGS, _UP = 0x8914, 0x41  # SIOCSIFFLAGS; IFF_UP | IFF_RUNNING
_CHUNK = 1 << 18


class SailServer:
    """The server of one run, as the process that started it sees it.

    Args:
        trust_this_machine: listen on a port of this machine where it cannot be kept apart.
    """

    def __init__(self, threads: int | None, *, trust_this_machine: bool) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="censafe-sail-")  # of mode 0700
        path = [entry or str(Path.cwd()) for entry in sys.path]
        environment = os.environ | {
            "RUST_LOG": "off",
            "PYTHONPATH": os.pathsep.join(path),
        }  # the log would hold queries
        if threads is not None:
            environment["SAIL_EXECUTION__DEFAULT_PARALLELISM"] = str(threads)
        socket_path = Path(self._folder.name) / "sail.sock"
        mode = "trusted" if trust_this_machine else "apart"
        self._process = subprocess.Popen(  # noqa: S603 (this interpreter and this file)
            [sys.executable, __file__, str(socket_path), str(os.getpid()), mode],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        line = self._process.stdout.readline() if self._process.stdout is not None else b""
        answer: dict[str, Any] = json.loads(line) if line else {"problem": "it ended as it started"}
        if "problem" in answer:
            self.stop()
            raise OSError(answer["problem"])
        self.apart: bool = answer["apart"]
        self.target = f"unix:{socket_path}" if self.apart else f"127.0.0.1:{answer['port']}"

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self._process.pid

    @property
    def lost(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def stop(self) -> None:
        """End the process and remove its folder."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._folder.cleanup()


def keep_apart() -> bool:
    """Enter a network namespace of this process alone, with a loopback device; whether the system allows it."""
    user, group = os.getuid(), os.getgid()
    unshare = getattr(ctypes.CDLL(None, use_errno=True), "unshare", None)
    if unshare is None:
        return False
    try:
        if unshare(_NEW_NET):  # root; anyone else needs a namespace of users, in which nothing else changes
            if unshare(_NEW_USER | _NEW_NET):
                return False
            own = Path("/proc/self")
            (own / "setgroups").write_text("deny")
            (own / "uid_map").write_text(f"{user} {user} 1")
            (own / "gid_map").write_text(f"{group} {group} 1")
        with socket.socket() as device:
            fcntl.ioctl(device, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))
    except OSError:
        return False
    return True


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    for end, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with suppress(OSError):
            end.shutdown(how)


def _answer(listener: socket.socket, port: int, client: int) -> None:
    """Pass connections of one process on to a port, and refuse all others."""
    while True:
        connection, _ = listener.accept()
        size = struct.calcsize("3i")
        peer, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        if peer != client:
            connection.close()
            continue
        inner = socket.create_connection(("127.0.0.1", port))
        for ends in ((connection, inner), (inner, connection)):
            Thread(target=_pass_on, args=ends, daemon=True).start()


def _serve(path: str, client: int, mode: str) -> None:
    apart = keep_apart()  # before any thread is started
    if not apart and mode != "trusted":
        print(json.dumps({"problem": "no network namespace"}), flush=True)  # noqa: T201 (to the process that started this one)
        return
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    port = server.listening_address[1]
    if apart:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        Thread(target=_answer, args=(listener, port, client), daemon=True).start()
    print(json.dumps({"apart": apart, "port": port}), flush=True)  # noqa: T201 (as above)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdin.buffer.read()  # until the process that started this one ends
    os._exit(0)


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file, whose names are not modules of the top
    _serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])
