const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

const abc = crypto.subtle.digest("SHA-256", "abc");
return {
  "crypto.digest.sha-256": hex(abc),
  "crypto.digest.sha-384": hex(crypto.subtle.digest("SHA-384", "abc")),
  "crypto.digest.sha-512": hex(crypto.subtle.digest("SHA-512", "abc")),
  "crypto.digest.name-object": hex(crypto.subtle.digest({ name: "sha-256" }, "abc")) === hex(abc),
  "crypto.digest.data-forms": [new Uint8Array([97, 98, 99]), new Uint8Array([97, 98, 99]).buffer, [97, 98, 99]].map((data) => hex(crypto.subtle.digest("SHA-256", data)) === hex(abc)),
  "crypto.digest.synchronous": [Array.isArray(abc), abc.length, abc[0]],
  "crypto.digest.awaited": [hex(await crypto.subtle.digest("SHA-256", "abc")) === hex(abc), Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", "abc"))).length],
  "crypto.digest.typed-array": [new Uint8Array(abc)[0], Array.from(abc)[31]],
  "crypto.digest.then": await crypto.subtle.digest("SHA-256", "abc").then((bytes) => bytes.length),
  "crypto.digest.sha-1-legacy": hex(crypto.subtle.digest({ name: "SHA-1", legacy: true }, "abc")),
  "crypto.reason.unsupported-algorithm": [await refusal(() => crypto.subtle.digest("SHA-1", "abc")), await refusal(() => crypto.subtle.digest("MD5", "abc"))],
  "crypto.reason.missing-args": [await refusal(() => crypto.subtle.digest()), await refusal(() => crypto.subtle.digest("SHA-256"))],
};
