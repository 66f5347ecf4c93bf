// A comparator that never returns.
[3, 2, 1].sort(() => { for (;;) {} });
