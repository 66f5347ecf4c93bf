return [btoa("hi"), atob("aGk="), Array.from(new TextEncoder().encode("é")), new TextDecoder().decode(new Uint8Array([0xe2, 0x82, 0xac])), structuredClone({ a: [1, new Date(0)] })];
