"""The memory that a server gives back."""

import subprocess
import sys

import pytest

LARGE_BLOCK = """
import ctypes, sys
from mimo.installation import return_memory

class Usage(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks")]
    _fields_ += [(f"more{number}", ctypes.c_size_t) for number in range(6)]

if not (mallinfo := getattr(ctypes.CDLL(None), "mallinfo2", None)):
    raise SystemExit("skipped")
mallinfo.restype = Usage
if "returning" in sys.argv:
    return_memory()
bytearray(20_000_000)  # Once freed, glibc takes blocks of its size from the heap.
before = mallinfo().hblks
block = bytearray(10_000_000)
print(mallinfo().hblks - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc keeps such blocks")
def test_large_blocks_are_outside_of_the_heap_and_so_go_back_to_the_system() -> None:
    outside = []
    for words in ([], ["returning"]):
        command = [sys.executable, "-c", LARGE_BLOCK, *words]
        run = subprocess.run(command, capture_output=True, check=False, text=True)
        if "skipped" in run.stderr:
            pytest.skip("the C library has no `mallinfo2`")
        outside.append(run.stdout.strip())

    assert outside == ["0", "1"]


READING = """
import resource, sys
from mimo.installation import return_memory

return_memory()
from mimo.index.embedding.encoder import packaged_encoder

def read():
    packaged_encoder().encode_many(["the kettle is on the shelf " * 12])
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

first, second, *_, last = (read() for _ in range(7))
print((last - second) // 5)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc gives so much back")
def test_reading_texts_keeps_the_memory_that_each_of_them_needs() -> None:
    run = subprocess.run([sys.executable, "-c", READING], capture_output=True, check=True)

    assert int(run.stdout) < 100  # Thousands of page faults if the heap shrinks after each product.
