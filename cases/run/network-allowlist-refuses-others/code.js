try { await fetch("http://127.0.0.1:9/"); } catch (error) { return [error.kind, error.reason, error.message]; }
