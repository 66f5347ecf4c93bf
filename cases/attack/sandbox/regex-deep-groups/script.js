// A pattern with 200,000 nested groups.
try { new RegExp("(".repeat(200000) + ")".repeat(200000)); } catch (e) { return e.name; }
