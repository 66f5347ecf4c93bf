// A length no string can have: an ordinary error by the rules of the language.
try { "x".repeat(2 ** 30); } catch (e) { return e.name; }
