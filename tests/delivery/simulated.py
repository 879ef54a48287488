"""A service in one thread: a seed decides the order of answers, repeated messages, and deaths of workers."""

import random
from dataclasses import dataclass, field
from types import SimpleNamespace

from penstock.delivery.contact import Workforce
from penstock.delivery.delivered import Delivered
from penstock.delivery.maker import Maker
from penstock.delivery.part import opened
from penstock.delivery.requests import Requests
from penstock.delivery.results import packed
from penstock.delivery.served import packet_of
from penstock.physical.lower import Service


class Contact:
    """A worker that computes its ranges when a consumer listens."""

    def __init__(self, name):
        self.name = name
        self.ready = False
        self.alive = True
        self.makers = {}
        self.questions = []
        self.answers = []

    def begin(self, job, packet, epoch, *, kept=False):
        self._check()
        if job in self.makers:
            return False
        self.makers[job] = Maker(opened(packet.packed.content, packet.packed.buffers), epoch)
        return True

    def ask(self, job, start, stop, nbytes):
        self._check()
        self.questions.append((job, start, stop))

    def drop(self, job):
        self.makers.pop(job, None)

    def work(self):
        job, start, stop = self.questions.pop(0)
        made = self.makers[job].make(start, stop)
        self.answers.append((("made", job, start, stop, *made[1:2], made.ended, 0.001, 0), made.parts))

    def hear(self):
        self._check()
        if not self.ready:
            self.ready = True
            return None
        head, parts = self.answers.pop(0)
        content = packed(parts)
        return SimpleNamespace(
            head=head, content=content.content, nbytes=content.nbytes, buffers=lambda: content.buffers
        )

    def _check(self):
        if not self.alive:
            raise EOFError


class Force(Workforce):
    def __init__(self, size, chance, deaths):
        self.size, self.chance, self.deaths = size, chance, deaths
        self.there = {}
        self.count = 0

    def contacts(self):
        return dict(self.there)

    def lost(self, contact):
        del self.there[contact.name]
        return True

    def tend(self):
        while len(self.there) < self.size:
            self.count += 1
            name = f"worker {self.count}"
            self.there[name] = Contact(name)
        self._somebody_dies(0.1)  # just before the request

    def wait(self, seconds):
        """Let one of them do something."""
        if not self.there:
            return
        contact = self.chance.choice(list(self.there.values()))
        if contact.questions:
            contact.work()
            if self.chance.random() < 0.1:  # the message is repeated
                contact.answers.append(contact.answers[-1])
        self._somebody_dies(0.1)

    def _somebody_dies(self, chance):
        if self.deaths and self.chance.random() < chance:
            self.deaths -= 1
            self.chance.choice(list(self.there.values())).alive = False

    def spoken(self):
        found = [each for each in self.there.values() if each.answers or not each.ready or not each.alive]
        self.chance.shuffle(found)
        return found

    def close(self):
        self.there.clear()


@dataclass(frozen=True)
class Simulated(Service):
    size: int = 2
    seed: int = 0
    deaths: int = 2
    forces: list = field(default_factory=list, compare=False)

    @property
    def name(self):
        return "'simulated'"

    def stage(self, node, lowering):
        def hire():
            self.forces.append(Force(self.size if node.part is None else 1, random.Random(self.seed), self.deaths))
            return self.forces[-1]

        return Delivered(Requests(node, packet_of(node, lowering), hire, lowering, 2 * self.size), lowering)
