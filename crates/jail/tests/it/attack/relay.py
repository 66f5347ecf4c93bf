# A process that starts its successor and ends, again and again: who kills it finds it gone.
# The number of generations is bounded, for the machine's sake.
import os
import signal

for _ in range(20):
    if os.fork() == 0:
        break
else:
    print("running", flush=True)
    signal.pause()
os.setsid()
for _ in range(2_000):
    if os.fork() != 0:
        os._exit(0)
