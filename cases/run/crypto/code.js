const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const key = await crypto.subtle.importKey("raw", new TextEncoder().encode("key"), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
const signature = crypto.subtle.sign("HMAC", key, "The quick brown fox jumps over the lazy dog");
return { digest: hex(crypto.subtle.digest("SHA-256", "abc")), sign: hex(new Uint8Array(signature)), verify: await crypto.subtle.verify("HMAC", key, new Uint8Array(signature), "The quick brown fox jumps over the lazy dog"), uuid: /^[0-9a-f-]{36}$/.test(crypto.randomUUID()), random: new Set(crypto.getRandomValues(new Uint32Array(8))).size };
