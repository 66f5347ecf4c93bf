// Circular garbage is collected: this fits however long it runs.
for (let i = 0; i < 300000; i++) { const a = { pad: new Array(20).fill(i) }; a.self = a; }
return "done";
