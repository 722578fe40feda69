"""A network between an app and its server that can fail in every way networks do."""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from tests.servers import free_port

#: What becomes of the server's answers on their way.
Carry = Callable[[bytes], bytes]
_AT_ONCE = struct.pack("ii", 1, 0)


class Proxy:
    """A TCP proxy in front of a server on this machine; use it as a context manager.

    :param target: the server's port; another one counts for new connections.
    :ivar connections: how many connections it has accepted.
    :ivar carry: what becomes of answers; it may wait, and b"" drops them.
    :ivar silent: whether it accepts and reads, and passes nothing on.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = free_port()
        self.connections = 0
        self.silent = False
        self.carry: Carry = bytes
        self._open: list[socket.socket] = []
        self._forgotten: set[socket.socket] = set()
        self._carriers: list[threading.Thread] = []
        self._listener: socket.socket | None = None
        self._fillers: list[socket.socket] = []

    @property
    def url(self) -> str:
        """The address, as VENUELIMIT_STORAGE_URI takes it."""
        return f"redis://127.0.0.1:{self.port}/0"

    def __enter__(self) -> Proxy:
        self.listen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.refuse()

    def forget(self) -> None:
        """Pass nothing on any more over the connections there are, as a firewall that has lost its state.

        New ones are carried as before.
        """
        self._forgotten.update(self._open)

    def listen(self) -> None:
        """Accept connections, again after :meth:`refuse` or :meth:`wall_off`."""
        self._stop_listening()
        self._listener = _listener(self.port, 100)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def reset(self) -> None:
        """Cut every connection there is, in the middle of whatever it carries."""
        for connection in self._open:
            with suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                connection.shutdown(socket.SHUT_RD)
            connection.close()
        self._open.clear()
        # whoever carries over a connection keeps it open until it has noticed
        for carrier in self._carriers:
            carrier.join(5)
        self._carriers.clear()

    def refuse(self) -> None:
        """Cut every connection, and accept no new ones."""
        self._stop_listening()
        self.reset()

    def wall_off(self) -> None:
        """Cut every connection, and leave new ones without any reply, as a firewall does that drops."""
        self.refuse()
        self._listener = _listener(self.port, 0)
        while _is_accepted(self._fill()):
            """Linux drops what does not fit into the queue of connections nobody has accepted."""

    def _fill(self) -> socket.socket:
        filler = socket.socket()
        filler.settimeout(0.05)
        self._fillers.append(filler)
        with suppress(OSError):
            filler.connect(("127.0.0.1", self.port))
        return filler

    def _stop_listening(self) -> None:
        if self._listener is not None:
            # wakes the thread that accepts
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for filler in self._fillers:
            filler.close()
        self._fillers.clear()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self.connections += 1
                carrier = threading.Thread(target=self._pass_on, args=(connection,), daemon=True)
                self._carriers.append(carrier)
                carrier.start()

    def _pass_on(self, client: socket.socket) -> None:
        """Carry both ways until either side hangs up."""
        with client, socket.socket() as server, suppress(OSError, ValueError):
            self._open += [client, server]
            server.connect(("127.0.0.1", self.target))
            while True:
                readable, _, _ = select.select([client, server], [], [])
                for source in readable:
                    data = source.recv(65536)
                    if not data:
                        return
                    self._carry(source, client, server, data)

    def _carry(
        self, source: socket.socket, client: socket.socket, server: socket.socket, data: bytes
    ) -> None:
        if self.silent or source in self._forgotten:
            return
        if source is client:
            server.sendall(data)
        else:
            client.sendall(self.carry(data))


def _listener(port: int, queue: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(queue)
    return listener


def _is_accepted(connection: socket.socket) -> bool:
    try:
        connection.getpeername()
    except OSError:
        return False
    return True
