"""nginx in front of an app: one that appends to what clients send, one that overwrites it, two in a row."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.servers import free_port, run_process

#: Keeps all that nginx writes in one folder, so that it runs for any user.
IN_FOLDER = """
access_log off;
client_body_temp_path {folder}/body;
proxy_temp_path {folder}/proxy;
fastcgi_temp_path {folder}/fastcgi;
uwsgi_temp_path {folder}/uwsgi;
scgi_temp_path {folder}/scgi;
"""
CONFIG = """
daemon off;
master_process off;
error_log stderr;
pid {folder}/pid;
events {{}}
http {{
    {in_folder}
    map $remote_addr $forwarded_node {{
        "~^[0-9.]+$"        "for=$remote_addr";
        "~^[0-9A-Fa-f:.]+$" "for=\\"[$remote_addr]\\"";
        default             "for=unknown";
    }}
    map $http_forwarded $add_forwarded {{
        ""      "$forwarded_node";
        default "$http_forwarded, $forwarded_node";
    }}
    server {{
        listen {append};
        location / {{
            proxy_pass http://{upstream};
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header Forwarded $add_forwarded;
            proxy_set_header X-Real-IP $remote_addr;
        }}
    }}
    server {{
        listen {overwrite};
        location / {{
            proxy_pass http://{upstream};
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header Forwarded for=$remote_addr;
            proxy_set_header X-Real-IP $remote_addr;
        }}
    }}
    server {{
        listen {outer};
        location / {{
            proxy_bind 127.0.0.5;
            proxy_pass http://{append};
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header Forwarded $add_forwarded;
        }}
    }}
}}
"""


class Nginx(NamedTuple):
    """Where nginx listens: appending, overwriting, and the outer one of two that append."""

    append: str
    overwrite: str
    outer: str


@contextmanager
def run_nginx(path: str, upstream: str) -> Iterator[Nginx]:
    """Run nginx in front of a server.

    :param path: where nginx lies.
    :param upstream: where the server listens, as ``proxy_pass`` takes it after ``http://``.
    """
    with tempfile.TemporaryDirectory(prefix="nginx-") as folder:
        nginx = Nginx(*(f"127.0.0.1:{free_port()}" for _ in Nginx._fields))
        config = Path(folder, "nginx.conf")
        in_folder = IN_FOLDER.format(folder=folder)
        text = CONFIG.format(folder=folder, in_folder=in_folder, upstream=upstream, **nginx._asdict())
        config.write_text(text)
        command = [path, "-p", folder, "-c", str(config), "-e", "stderr"]
        with run_process(command, nginx.outer, folder):
            yield nginx


def check_config(path: str, config: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Have ``nginx -t`` look at a whole configuration.

    :param folder: where it may write.
    """
    file = folder / "nginx.conf"
    # only root may listen on port 80, everywhere
    file.write_text(in_folder(config, folder).replace("listen 80;", "listen 8080;"))
    command = [path, "-t", "-p", str(folder), "-c", str(file), "-e", "stderr", "-g", f"pid {folder}/pid;"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def in_folder(config: str, folder: Path) -> str:
    """A configuration that writes into a folder only, so that it is good for any user and on any port."""
    return config.replace("http {", "http {" + IN_FOLDER.format(folder=folder), 1)


@contextmanager
def run_config(path: str, config: str, address: str) -> Iterator[None]:
    """Run nginx with a whole configuration.

    :param address: where that listens.
    """
    with tempfile.TemporaryDirectory(prefix="nginx-") as folder:
        file = Path(folder, "nginx.conf")
        file.write_text(in_folder(config, Path(folder)))
        options = f"daemon off; master_process off; error_log stderr; pid {folder}/pid;"
        command = [path, "-p", folder, "-c", str(file), "-e", "stderr", "-g", options]
        with run_process(command, address, folder):
            yield
