// Would sleep for ever in Atomics.wait.
return typeof Atomics;
