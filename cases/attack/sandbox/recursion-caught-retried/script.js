// Catches the overflow at the bottom and recurses again.
const f = () => { try { f(); } catch { f(); } };
f();
