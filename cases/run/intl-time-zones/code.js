const at = new Date(Date.UTC(2026, 6, 1, 15, 4, 5, 678));
const parts = new Intl.DateTimeFormat("en-CA", { timeZone: "Asia/Seoul", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false, fractionalSecondDigits: 3, weekday: "short" }).formatToParts(at);
let unknown;
try { new Intl.DateTimeFormat("en", { timeZone: "Mars/Base" }); } catch (error) { unknown = error.name; }
return { parts: Object.fromEntries(parts.filter((part) => part.type !== "literal").map((part) => [part.type, part.value])), unknown, sorted: ["b", "ä", "a"].sort((x, y) => x.localeCompare(y)), number: new Intl.NumberFormat("de-DE").format(1234567.891) };
