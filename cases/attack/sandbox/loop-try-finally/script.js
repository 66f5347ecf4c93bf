// A loop whose finally block swallows whatever would end it.
for (;;) {
  try {
    for (;;) {}
  } catch {
  } finally {
    continue;
  }
}
