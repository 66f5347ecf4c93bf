const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

const text = "The quick brown fox jumps over the lazy dog";
const key = crypto.subtle.importKey("raw", "key", { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
const standard = crypto.subtle.importKey("raw", new TextEncoder().encode("key"), "HMAC", false, ["sign"]);
const sha512 = crypto.subtle.importKey("raw", "key", { name: "HMAC", hash: { name: "SHA-512" } }, false, ["sign"]);
const signature = crypto.subtle.sign("HMAC", key, text);
const importing = (...rest) => refusal(() => crypto.subtle.importKey(...rest));
return {
  "crypto.importKey.shape": [key.type, key.extractable, key.algorithm.name, key.algorithm.hash.name],
  "crypto.importKey.default-hash": standard.algorithm.hash.name,
  "crypto.importKey.awaited": (await key) === key,
  "crypto.sign": hex(signature),
  "crypto.sign.sha-512": hex(crypto.subtle.sign("HMAC", sha512, text)).slice(0, 32),
  "crypto.sign.synchronous": [Array.isArray(signature), signature.length, hex(await crypto.subtle.sign({ name: "HMAC" }, standard, text)) === hex(signature)],
  "crypto.verify": [await crypto.subtle.verify("HMAC", key, new Uint8Array(signature), text), await crypto.subtle.verify("HMAC", key, signature, `${text}.`)],
  "crypto.reason.unsupported-format": await importing("pkcs8", "key", "HMAC", false, ["sign"]),
  "crypto.reason.unsupported-algorithm-key": await importing("raw", "key", "RSA-OAEP", false, ["sign"]),
  "crypto.reason.unsupported-hash": await importing("raw", "key", { name: "HMAC", hash: "MD5" }, false, ["sign"]),
  "crypto.reason.invalid-algorithm": await importing("raw", "key", {}, false, ["sign"]),
  "crypto.reason.missing-args-key": await importing("raw"),
  "crypto.reason.invalid-key": [await refusal(() => crypto.subtle.sign("HMAC", {}, text)), await refusal(() => crypto.subtle.sign("HMAC", standard.algorithm, text))],
  "crypto.reason.unsupported-algorithm-sign": await refusal(() => crypto.subtle.sign("ECDSA", key, text)),
};
