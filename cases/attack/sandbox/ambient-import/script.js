// Imports a module.
try { await import("std"); } catch (e) { return e.name; }
