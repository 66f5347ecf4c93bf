const steps = (clock) => {
  let [last, least] = [clock(), Infinity];
  // Until it moved at least twice, so that there is a step to look at.
  for (let [i, moved] = [0, 0]; i < 3000000 && moved < 3; i++) {
    const now = clock();
    if (now > last) {
      least = Math.min(least, now - last);
      moved++;
    }
    last = now;
  }
  return least >= 0.999 && least < Infinity ? "gone: nothing finer than a millisecond" : `a step of ${least} ms`;
};
return { "Date.now": steps(() => Date.now()), "performance.now": steps(() => performance.now()), "shared memory": typeof SharedArrayBuffer === "undefined" && typeof Atomics === "undefined" ? "gone" : "there" };
