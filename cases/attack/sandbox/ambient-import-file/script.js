// Imports a file.
try { await import("/etc/passwd"); } catch (e) { return e.name; }
