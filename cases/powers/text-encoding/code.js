return { "text.encode": Array.from(new TextEncoder().encode("é€")), "text.decode": new TextDecoder().decode(new Uint8Array([0xc3, 0xa9])) };
