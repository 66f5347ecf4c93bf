const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

const key = await crypto.subtle.importKey("raw", new Uint8Array(32), "AES-GCM", false, ["encrypt", "decrypt"]);
const round = async (iv) => {
  const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData: "head" }, key, "secret text");
  const opened = await crypto.subtle.decrypt({ name: "AES-GCM", iv, additionalData: "head" }, key, new Uint8Array(sealed));
  return new TextDecoder().decode(new Uint8Array(opened));
};
const sealed = crypto.subtle.encrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, key, "x");
const password = await crypto.subtle.importKey("raw", "password", "PBKDF2", false, ["deriveBits"]);
const secret = await crypto.subtle.importKey("raw", new Uint8Array(22).fill(11), "HKDF", false, ["deriveBits"]);
return {
  "crypto.aes-gcm": [await round(new Uint8Array(12)), await round(new Uint8Array(1)), await round(new Uint8Array(60))],
  "crypto.aes-gcm.tampered": await refusal(() => crypto.subtle.decrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, key, [...sealed.slice(0, -1), sealed.at(-1) ^ 1])),
  "crypto.aes-gcm.no-iv": await refusal(() => crypto.subtle.encrypt({ name: "AES-GCM", iv: [] }, key, "x")),
  "crypto.pbkdf2": hex(await crypto.subtle.deriveBits({ name: "PBKDF2", salt: "salt", iterations: 2, hash: "SHA-256" }, password, 256)),
  "crypto.pbkdf2.bound": await refusal(() => crypto.subtle.deriveBits({ name: "PBKDF2", salt: "salt", iterations: 1e9, hash: "SHA-256" }, password, 256)),
  "crypto.hkdf": hex(await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], info: [240, 241, 242, 243, 244, 245, 246, 247, 248, 249] }, secret, 336)),
};
