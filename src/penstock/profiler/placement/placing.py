"""Placing: the caches that a data set inserts into its own plan (`Options.autocache`)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from penstock.errors import PenstockError
from penstock.forked import new_lock
from penstock.options import Options
from penstock.physical.lower import StageObserver
from penstock.plan.fingerprint import fingerprint
from penstock.plan.node import INFINITE_CARDINALITY, Node, rebuilt
from penstock.plan.storing import Cache, DiskCache
from penstock.profiler.analysis.meter import Meter
from penstock.profiler.analysis.places import Place, places
from penstock.profiler.placement.choose import Choice, Kept, Room, Spot, choose, told
from penstock.profiler.placement.remembered import Uses, folder_of, measured, recall, remember, room
from penstock.profiler.placement.spots import against, covered, turns
from penstock.runtime.autotune.remembered import tuning_digest
from penstock.runtime.machine.granted import available_memory
from penstock.runtime.memory.budget import budget_for
from penstock.store.content_key.made_of import made_of
from penstock.store.entry import StoredEntry
from penstock.store.memory import MemoryStore

_SHARE = 2  # divisor of the free memory that such a cache may use


class Placing:
    """Measures the first complete iteration, chooses a place, and inserts the cache from the next iteration on.

    Thread-safe.

    If an earlier process has measured the plan, the first iteration has the cache already.

    Elements and their order do not depend on the cache. The state of an iterator contains its position as `place`.
    """

    def __init__(self, plan: Node, options: Options) -> None:
        self._plan = plan
        self._options = options
        self._uses = Uses()
        self._places = places(plan)
        self._lock = new_lock()
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Reset all decisions."""
        self._made_of = self._functions()
        self._against = against(self._places, self._options)
        self._hidden = covered(self._places)
        self._stores: dict[str, MemoryStore] = {}
        self._entry: str | None = None  # folder of the cache on disk, after an iteration has used it
        self._choice: Choice | None = None
        self._epochs, figures = recall(self._key())  # complete iterations
        self._spots: tuple[Spot, ...] = ()  # figures of the first complete iteration
        if figures and figures.keys() == {place.name for place in self._free()}:
            self._spots = tuple(self._spot(place, *figures[place.name]) for place in self._free())
            self._choice = choose(self._spots, self._room(), self._epochs)

    def _key(self) -> str:
        """Return the key for remembered figures: steps, functions, number of elements."""
        options = self._options
        plan = fingerprint(self._plan, options.seed, options.deterministic)
        return f"{tuning_digest(plan, options)} {self._made_of} {self._plan.cardinality}"

    def _free(self) -> list[Place]:
        """Return the steps that no cache of the user prevents from running."""
        return [place for place in self._places if place.name not in self._hidden]

    def _spot(self, place: Place, seconds: float, nbytes: float | None) -> Spot:
        return Spot(place.name, place.label, place.step.where, seconds, nbytes, self._against[place.name])

    def _functions(self) -> str:
        """Return a key of all functions with their captured values, which the program may change between epochs."""
        found = (getattr(place.step, "function", getattr(place.step, "predicate", None)) for place in self._places)
        return made_of(*(function for function in found if function is not None)).key

    @property
    def place(self) -> str | None:
        """Place of the cache for iterations that begin now, or None."""
        with self._lock:
            if self._choice is not None and self._made_of != self._functions():
                self._begin_anew()
            return None if self._choice is None else self._choice.place

    def placed(self, place: str | None) -> Node:
        """Return the plan with a cache at this place, for an iteration."""
        plan, cache = self._with_cache(place)
        if isinstance(cache, DiskCache):
            choice = self._choice
            nbytes = 0 if choice is None or choice.spot is None else int(choice.spot.nbytes or 0)
            self._entry = cache.store.folder(self._options.seed, self._options.deterministic)
            self._uses.begin(self._entry, nbytes)
        return plan

    def shown(self) -> Node:
        """Return the plan with the chosen cache, for display."""
        choice = self._choice
        return self._with_cache(None if choice is None else choice.place)[0]

    def _with_cache(self, place: str | None) -> tuple[Node, Node | None]:
        """Return the plan with a cache, and the cache."""
        found = next((each for each in self._places if place is not None and place.endswith(f":{each.name}")), None)
        if place is None or found is None:
            return self._plan, None
        cache = self._cache(place, found)
        return rebuilt(self._plan, lambda node: cache if node is found.step else None), cache

    def _cache(self, place: str, found: Place) -> Node:
        if place.startswith("disk:"):
            return DiskCache(input=found.step, path=str(folder_of(self._plan, self._options)), where=found.step.where)
        with self._lock:
            store = self._stores.setdefault(place, MemoryStore(silent=True, most=self._memory_room()))
        return Cache(input=found.step, store=store, where=found.step.where)

    def watch(self, running: Node, place: str | None) -> RunObserver:
        """Return the observer of an iteration that begins at the first element."""
        return RunObserver(self, running, None if place is not None or self._spots else Meter(running, warm=False))

    def ended(self, running: Node, meter: Meter | None) -> None:
        """Record the end of an iteration over `running`."""
        with self._lock:
            self._epochs += 1
            if meter is not None and not self._spots:
                self._spots = self._found(running, meter)
            if any(store.overflowed for store in self._stores.values()):
                self._stores.clear()
                self._choice = Choice(None, reason="the elements are larger than the available room")
            elif self._spots and (self._choice is None or self._choice.spot is None):
                self._choice = choose(self._spots, self._room(), self._epochs)
                remember(self._key(), self._epochs, self._spots)

    def _found(self, running: Node, meter: Meter) -> tuple[Spot, ...]:
        seen = measured(self._places, running, meter)
        below: dict[str, set[str]] = {}
        found = []
        for place in self._places:
            below[place.name] = {place.name}.union(*(below[name] for name in place.inputs))
        for place in self._free():
            parts = [seen[name] for name in below[place.name] - self._hidden if name in seen]
            own, nbytes = seen.get(place.name), None
            if own is not None and own.elements:
                count = place.step.cardinality
                nbytes = own.each * (count if count >= 0 else own.elements / turns(self._plan, place.step))
            spot = self._spot(place, sum(part.seconds for part in parts), nbytes)
            if spot.why_not is None and any(part.failures for part in parts):
                spot = replace(spot, why_not="has elements that fail, and only an iteration without failures is stored")
            found.append(spot)
        return tuple(found)

    def _room(self) -> Room:
        folder = folder_of(self._plan, self._options) if self._options.autocache in ("disk", "auto") else None
        return Room(self._memory_room(), None if folder is None else room(folder))

    def _memory_room(self) -> int | None:
        if self._options.autocache not in ("memory", "auto"):
            return None
        return min(budget_for(self._options).total, available_memory()) // _SHARE

    def told(self) -> list[str]:
        """Return lines for `explain`: the estimate, and the state of the cache."""
        ends = self._plan.cardinality != INFINITE_CARDINALITY
        wanted = self._options.autocache or ""
        return told(wanted, self._spots, self._choice, self._epochs, self._kept(), ends=ends)

    def _kept(self) -> Kept:
        """Return the content of the chosen cache, or None."""
        choice = self._choice
        if choice is None or choice.place is None:
            return None
        if choice.kind == "memory" or self._entry is None:
            return self._stores.get(choice.place)
        entry = StoredEntry(self._entry)
        with suppress(PenstockError, OSError):  # the next iteration reports the error or replaces the cache
            entry.refresh()
        return entry


class RunObserver:
    """The observer of one iteration: `meter` receives its stages, `ended` is called after its last element."""

    def __init__(self, placing: Placing, running: Node, meter: Meter | None) -> None:
        self.meter: StageObserver | None = meter
        self._placing = placing
        self._running = running
        self._meter = meter

    def ended(self) -> None:
        self._placing.ended(self._running, self._meter)
