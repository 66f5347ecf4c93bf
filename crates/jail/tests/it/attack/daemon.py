# Leaves its parent, its group and its session behind: fork, setsid, fork, and once more.
import os
import sys

seconds, then = sys.argv[1:]
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
        os.write(writer, b".")
        os.execv("/bin/sleep", ["sleep", seconds])
    os._exit(0)
os.wait()
assert len(os.read(reader, 1) + os.read(reader, 1)) == 2
if then == "end":
    sys.exit(7)
os.execv("/bin/sleep", ["sleep", seconds])
