// A buffer of a size that cannot exist.
try { new ArrayBuffer(2 ** 53); } catch (e) { return e.name; }
