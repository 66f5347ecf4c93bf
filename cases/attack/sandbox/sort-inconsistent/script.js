// A comparator that always disagrees, on a large array.
const a = Array.from({ length: 1000000 }, (_, i) => i);
a.sort(() => -1);
for (;;) a.sort(() => 1);
