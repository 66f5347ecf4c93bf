# Doubles its processes, as many times as the second argument says. Each then waits for the
# first to end.
import os
import sys
import time

first = os.getpid()
for _ in range(int(sys.argv[2])):
    if os.fork() == 0:
        pass
if os.getpid() != first:
    time.sleep(60)
    os._exit(0)
if int(sys.argv[2]) > 5:
    time.sleep(60)
