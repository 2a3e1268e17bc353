"""A PostgreSQL server of the tests' own: on loopback, in a folder of its own, never as root, gone with the tests."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin")


def programs() -> Path | None:
    """The folder of PostgreSQL's programs; Debian keeps them out of PATH."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = [path for place in _PLACES for path in Path("/").glob(place.lstrip("/")) if (path / "initdb").exists()]
    return max(folders, default=None)


class Server:
    """Databases of a test: `url` makes a new one. `kill` and `start` are what an outage is."""

    def __init__(self) -> None:
        found = programs()
        assert found is not None
        self._programs = found
        self.folder = Path(tempfile.mkdtemp(prefix="groklab-postgres-"))
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self._as_whom: dict[str, Any] = {}
        if os.geteuid() == 0:  # which PostgreSQL refuses to be
            user = pwd.getpwnam("postgres" if _known("postgres") else "nobody")
            self._as_whom = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        self._run("initdb", "-D", self._data, "-U", "lab", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def start(self) -> None:
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": ""}
        settings |= {"fsync": "off", "max_connections": 100}  # no test takes the machine's power away
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        log = (self.folder.parent / f"{self.folder.name}.log").open("ab")
        command = [str(self._programs / "postgres"), "-D", self._data, *words]
        self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self._as_whom)
        log.close()
        deadline = time.monotonic() + 30
        while not self.answers():
            assert self._process.poll() is None and time.monotonic() < deadline, "PostgreSQL did not start"
            time.sleep(0.05)

    def answers(self) -> bool:
        ready = [str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ready, cwd=self.folder).returncode == 0

    def kill(self) -> None:
        """As when the machine fails: all its processes at once, and nothing is tidied up."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        workers = [int(child) for child in children.read_text().split()] if children.exists() else []
        self._process.kill()
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        self._process.wait()

    def url(self) -> str:
        """The address of a new database."""
        self._databases += 1
        name = f"lab{self._databases}"
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "lab", name)
        return self.address(name)

    def address(self, database: str, user: str = "lab") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def close(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)  # at once, without a checkpoint
        self._process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder.parent / f"{self.folder.name}.log").unlink(missing_ok=True)

    def _run(self, program: str, *words: str) -> None:
        command = [str(self._programs / program), *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, **self._as_whom)
        assert done.returncode == 0, done.stderr


def _known(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return int(some.getsockname()[1])
