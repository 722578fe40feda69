"""TLS in front of a real server, with certificates made on the spot."""

from __future__ import annotations

import select
import shutil
import socket
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.faults.proxy import Proxy
from tests.parts import Part

OPENSSL = Part(
    "openssl", lambda: shutil.which("openssl"), "install openssl, such as with 'apt-get install openssl'"
)


class Certificate(NamedTuple):
    """A certificate that signs itself, and its key; both are files."""

    certificate: Path
    key: Path


def make_certificate(openssl: str, folder: Path, name: str) -> Certificate:
    """Make a certificate for a host name."""
    made = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    where = ["-keyout", str(made.key), "-out", str(made.certificate), "-days", "2"]
    who = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    subprocess.run([openssl, *request, *where, *who], check=True, capture_output=True)
    return made


class TlsProxy(Proxy):
    """A proxy that speaks TLS to clients, and plainly to the server."""

    def __init__(self, target: int, certificate: Certificate) -> None:
        super().__init__(target)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*certificate)

    def _pass_on(self, client: socket.socket) -> None:
        # the client says no more than this in the shake of hands if it does not trust the certificate
        with client, suppress(OSError, ValueError):
            client.settimeout(5)
            with self._context.wrap_socket(client, server_side=True) as wrapped, socket.socket() as server:
                wrapped.settimeout(None)
                server.connect(("127.0.0.1", self.target))
                self._open += [wrapped, server]
                self._carry_on(wrapped, server)

    def _carry_on(self, client: ssl.SSLSocket, server: socket.socket) -> None:
        while True:
            waiting = [client] if client.pending() else select.select([client, server], [], [])[0]
            for source in waiting:
                data = source.recv(65536)
                if not data:
                    return
                self._carry(source, client, server, data)
