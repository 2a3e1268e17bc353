"""A lease on a fleet: one process trains it at a time, and a dead one's is taken up by the next.

Leases are held by the database's clock, which all processes share. Should it be set back, a lease that would last
longer than any can is cut to a lease's length: its holder renews it long before that, and a dead one does not.
"""

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from groklab.errors import GroklabError, LabError, LeaseLost
from groklab.lab.database import Database, enduring
from groklab.lab.schema import attempts, events, plans
from groklab.lab.worker import is_gone, this_worker

SECONDS = 30.0
_BEATS = 3  # renewals in a lease's time
_given_back: set[str] = set()  # tokens that this process is done with, though the lab could not be told


@dataclass(slots=True)
class Lease:
    """This process's turn at a plan; `number` is the plan's in the database."""

    database: Database
    number: int
    plan: str
    token: str
    seconds: float
    lost: threading.Event = field(default_factory=threading.Event)

    def check(self, connection: Connection) -> None:
        """Refuse to go on once another process has taken the plan over; until this transaction ends, none can."""
        own = select(attempts.c.number).where(self._own()).with_for_update(read=True)
        if connection.scalar(own) is None:
            self.lost.set()
            raise LeaseLost(f"another process has taken over the plan {self.plan}; this one must stop")

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Inside, a thread renews the lease; behind it, the lease is given back."""
        over = threading.Event()
        heart = threading.Thread(target=self._beat, args=(over,), name=f"lease {self.plan}", daemon=True)
        heart.start()
        try:
            yield
        finally:
            over.set()
            heart.join()
            try:
                self.database.settle()
            finally:
                self._release()

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(self.seconds / _BEATS):
            try:
                if not self._renew():
                    self.lost.set()
                    return
            except GroklabError:
                continue  # a server that is away: who reports next is told, or it is back by then

    def _renew(self) -> bool:
        with self.database.beside() as connection:
            renewed = connection.execute(
                update(attempts).where(self._own()).values(expires=self.database.kind.now + self.seconds)
            )
        return renewed.rowcount == 1

    def _release(self) -> None:
        """Give the lease back; where the lab cannot be told any more, it ends by itself, and for this process now."""
        try:
            with self.database.beside() as connection:
                ended = update(attempts).where(self._own()).values(ended=func.current_timestamp())
                if connection.execute(ended).rowcount:
                    note(connection, self.number, "released")
        except GroklabError:
            self.lost.set()
            _given_back.add(self.token)

    def _own(self) -> Any:
        return (attempts.c.plan == self.number) & (attempts.c.token == self.token) & attempts.c.ended.is_(None)


def claim(database: Database, plan: str, seconds: float) -> Lease | None:
    """The lease on a plan; None while another process holds it, or when nothing is left to do under it."""
    return _claim(database, plan, secrets.token_hex(8), seconds)


@enduring
def _claim(database: Database, plan: str, token: str, seconds: float) -> Lease | None:
    with database.writing() as connection:
        database.kind.alone(connection)  # as opening a plan may give others up
        known = select(plans.c.number, plans.c.status).where(plans.c.identity == plan)
        number, status = connection.execute(known).one_or_none() or (None, None)
        if number is None:
            raise LabError(f"the lab {database.name} has no plan {plan}; open_plan comes first")
        if status != "open":
            return None
        lease = Lease(database, int(number), plan, token, seconds)
        holder = _holder(connection, database, lease)
        if holder == token:  # claimed before the server went away
            return lease
        if holder is not None:
            return None
        taken = (attempts.c.plan == number) & attempts.c.ended.is_(None)
        if connection.execute(update(attempts).where(taken).values(ended=func.current_timestamp())).rowcount:
            note(connection, lease.number, "taken over")
        row = {"plan": number, "token": token, "worker": this_worker(), "seconds": seconds}
        connection.execute(insert(attempts).values(**row, expires=database.kind.now + seconds))
        note(connection, lease.number, "claimed", worker=this_worker())
        return lease


def _holder(connection: Connection, database: Database, lease: Lease) -> str | None:
    """The token of the attempt that holds the plan, if one does."""
    unended = (attempts.c.plan == lease.number) & attempts.c.ended.is_(None)
    longest = database.kind.now + attempts.c.seconds
    too_long = unended & (attempts.c.expires > longest)
    connection.execute(update(attempts).where(too_long).values(expires=longest))
    held = select(attempts.c.token, attempts.c.worker).where(unended, attempts.c.expires > database.kind.now)
    for token, worker in connection.execute(held):
        if token == lease.token or not _is_over(token, worker):
            return str(token)
    return None


def _is_over(token: str, worker: str) -> bool:
    """Whether an attempt that the lab does not know to have ended is over all the same."""
    return token in _given_back or is_gone(worker)


def held_plans(connection: Connection, database: Database) -> set[str]:
    """The open plans that some process holds."""
    held = select(plans.c.identity, attempts.c.token, attempts.c.worker)
    held = held.join(attempts, attempts.c.plan == plans.c.number)
    held = held.where(plans.c.status == "open", attempts.c.ended.is_(None), attempts.c.expires > database.kind.now)
    return {identity for identity, token, worker in connection.execute(held) if not _is_over(token, worker)}


def note(connection: Connection, plan: int, kind: str, **detail: Any) -> None:
    """Keep what became of a plan."""
    text = json.dumps(detail, sort_keys=True)
    connection.execute(insert(events).values(plan=plan, kind=kind, detail=text))
