// Catches everything and starts again.
again: while (true) {
  try {
    while (true) {}
  } catch {
    continue again;
  }
}
