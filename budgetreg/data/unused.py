"""What the cache holds that no run would map: arrays of earlier layouts, or of files that are gone or changed."""

from collections.abc import Iterator

from budgetreg.data import mnist, power_law, tabular
from budgetreg.data.cache import LOCK, TEMPORARY, cache_root
from budgetreg.data.prepared import FACTS
from budgetreg.files.garbage import Garbage


def unused() -> Iterator[Garbage]:
    """Give the folders of the cache that nothing refers to, and what killed processes left half prepared in others.

    A folder of a file that was converted before its source was recorded there is not among them: whose it is, nobody
    can tell.
    """
    stale = {path: why for source in (mnist, power_law, tabular) for path, why in source.unused_caches().items()}
    for path, why in stale.items():
        yield Garbage(path, why, _is_ours, path / LOCK)
    for path in sorted(cache_root().glob(f"*/*{TEMPORARY}")):
        if path.parent not in stale:
            yield Garbage(path, "half prepared by a process that is gone", lock=path.parent / LOCK)


def _is_ours(name: str) -> bool:
    return name == LOCK or name.endswith((".npy", f".npy{TEMPORARY}", FACTS))
