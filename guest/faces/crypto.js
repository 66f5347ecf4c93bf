// The face of `crypto`: WebCrypto's names, answers at once. A result is an array
// of bytes; `new Uint8Array(result)`, `await result` and `result.then` all work.
//
// `call(operation, arguments, bytes)` gives `{value, bytes}` or throws a helper
// error.
(call) => {
  'use strict';

  const RANDOM_BYTES_MAX = 65536;

  const fault = (reason, helper, message) =>
    Object.assign(new Error(message), { kind: 'INVALID_INPUT', reason, helper });

  const utf8 = (text) => {
    const out = [];
    for (const letter of text.toWellFormed()) {
      const code = letter.codePointAt(0);
      if (code < 0x80) out.push(code);
      else if (code < 0x800) out.push(0xc0 | code >> 6, 0x80 | code & 63);
      else if (code < 0x10000) out.push(0xe0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63);
      else out.push(0xf0 | code >> 18, 0x80 | code >> 12 & 63, 0x80 | code >> 6 & 63, 0x80 | code & 63);
    }
    return new Uint8Array(out);
  };

  // A string, a buffer, a view of one, or any array of bytes.
  const buffer = (raw, helper) => {
    if (typeof raw === 'string') return utf8(raw);
    if (raw instanceof ArrayBuffer) return new Uint8Array(raw);
    if (ArrayBuffer.isView(raw)) return new Uint8Array(raw.buffer, raw.byteOffset, raw.byteLength);
    if (raw !== null && typeof raw === 'object' && typeof raw.length === 'number') return Uint8Array.from(raw, (byte) => byte & 255);
    throw fault('missing-args', helper, 'bytes are missing: a string, a buffer or an array of bytes');
  };

  const join = (...parts) => {
    const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) { all.set(part, at); at += part.length; }
    return all;
  };

  const hidden = (object, name, value) => Object.defineProperty(object, name, { value, configurable: true, writable: true });

  const soon = (object, plain) => hidden(object, 'then', (done, failed) => Promise.resolve(plain()).then(done, failed));

  const array = (bytes) => {
    const plain = Array.from(bytes);
    hidden(plain, 'byteLength', plain.length);
    Object.defineProperty(plain, 'buffer', { get: () => Uint8Array.from(plain).buffer });
    return plain;
  };
  const result = (bytes) => {
    const all = array(bytes);
    soon(all, () => array(bytes));
    hidden(all, 'catch', () => Promise.resolve(array(bytes)));
    hidden(all, 'finally', (after) => Promise.resolve(array(bytes)).finally(after));
    return all;
  };

  // -- Algorithms and keys ---------------------------------------------------

  const nameOf = (algorithm, helper) => {
    const name = typeof algorithm === 'string' ? algorithm : algorithm?.name;
    if (typeof name !== 'string') throw fault('invalid-algorithm', helper, 'the algorithm has no name');
    return name.toUpperCase();
  };

  const plainHash = (raw) => (typeof raw === 'string' ? { name: raw } : { name: raw?.name, legacy: raw?.legacy === true });

  const hashOf = (raw, helper) => {
    const hash = raw === undefined || raw === null ? { name: 'SHA-256' } : plainHash(raw);
    if (typeof hash.name !== 'string') throw fault('invalid-algorithm', helper, 'the hash has no name');
    hash.name = hash.name.toUpperCase();
    const known = ['SHA-256', 'SHA-384', 'SHA-512'].includes(hash.name) || (hash.name === 'SHA-1' && hash.legacy);
    if (!known) throw fault('unsupported-hash', helper, `unsupported hash \`${hash.name}\``);
    return hash;
  };

  const secrets = new WeakMap();

  class CryptoKey {
    constructor(bytes, algorithm, usages, extractable) {
      this.type = 'secret';
      this.extractable = extractable;
      this.algorithm = algorithm;
      this.usages = usages;
      hidden(this, 'then', undefined);
      secrets.set(this, bytes);
      Object.freeze(this);
    }
  }

  const secretOf = (key, names, usage, helper) => {
    const bytes = key !== null && typeof key === 'object' ? secrets.get(key) : undefined;
    if (!bytes) throw fault('invalid-key', helper, 'this is no key; make one with importKey');
    if (!names.includes(key.algorithm.name)) throw fault('invalid-key', helper, `the key is for \`${key.algorithm.name}\``);
    if (usage && key.usages.length > 0 && !key.usages.includes(usage)) throw fault('invalid-key', helper, `the key may not be used to ${usage}`);
    return bytes;
  };

  const KEYS = { HMAC: 'HMAC', 'AES-GCM': 'AES-GCM', PBKDF2: 'PBKDF2', HKDF: 'HKDF' };

  const fromBase64Url = (text, helper) => {
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const out = [];
    let bits = 0;
    let held = 0;
    for (const letter of String(text)) {
      const value = letters.indexOf(letter);
      if (value < 0) throw fault('invalid-key', helper, 'the key is not base64url');
      bits = (bits << 6 | value) & 0xffff;
      held += 6;
      if (held >= 8) { held -= 8; out.push(bits >> held & 255); }
    }
    return Uint8Array.from(out);
  };

  const makeKey = (bytes, algorithm, usages, helper, extractable) => {
    const name = nameOf(algorithm, helper);
    if (!Object.hasOwn(KEYS, name)) throw fault('unsupported-algorithm', helper, `unsupported algorithm \`${name}\``);
    const own = { name };
    if (name === 'HMAC') {
      if (bytes.length === 0) throw fault('invalid-key', helper, 'the key is empty');
      own.hash = hashOf(algorithm?.hash, helper);
      own.length = bytes.length * 8;
    }
    if (name === 'AES-GCM') {
      if (![16, 24, 32].includes(bytes.length)) throw fault('invalid-key', helper, 'the key must have 16, 24 or 32 bytes');
      own.length = bytes.length * 8;
    }
    Object.freeze(own);
    return new CryptoKey(bytes, own, Object.freeze(usages === undefined || usages === null ? [] : Array.from(usages, String)), Boolean(extractable));
  };

  const importKey = (format, data, algorithm, extractable, usages) => {
    const helper = 'crypto.subtle.importKey';
    if (format === undefined || data === undefined || data === null || algorithm === undefined) throw fault('missing-args', helper, 'importKey(format, bytes, algorithm, extractable, usages)');
    let bytes;
    if (format === 'raw') bytes = buffer(data, helper).slice();
    else if (format === 'jwk' && data.kty === 'oct') bytes = fromBase64Url(data.k, helper);
    else throw fault('unsupported-format', helper, `unsupported format \`${format}\`; use \`raw\``);
    return makeKey(bytes, algorithm, usages, helper, extractable && format !== undefined && nameOf(algorithm, helper) === 'AES-GCM');
  };

  const generateKey = (algorithm, extractable, usages) => {
    const helper = 'crypto.subtle.generateKey';
    const name = nameOf(algorithm, helper);
    const sizes = { 'SHA-1': 64, 'SHA-256': 64, 'SHA-384': 128, 'SHA-512': 128 };
    let count;
    if (name === 'HMAC') count = algorithm.length ? algorithm.length / 8 : sizes[hashOf(algorithm.hash, helper).name];
    else if (name === 'AES-GCM') count = algorithm.length / 8;
    else throw fault('unsupported-algorithm', helper, `unsupported algorithm \`${name}\``);
    if (!Number.isInteger(count)) throw fault('invalid-algorithm', helper, 'the length must be whole bytes');
    return makeKey(call('crypto.randomBytes', { count }).bytes, algorithm, usages, helper, extractable);
  };

  const exportKey = (format, key) => {
    const helper = 'crypto.subtle.exportKey';
    if (format !== 'raw') throw fault('unsupported-format', helper, `unsupported format \`${format}\`; use \`raw\``);
    const bytes = secretOf(key, Object.keys(KEYS), null, helper);
    if (!key.extractable) throw fault('invalid-key', helper, 'the key may not be taken out');
    return result(bytes);
  };

  // -- Operations ------------------------------------------------------------

  const need = (helper, ...rest) => {
    if (rest.some((one) => one === undefined)) throw fault('missing-args', helper, 'an argument is missing');
  };

  const only = (name, algorithm, helper) => {
    const asked = nameOf(algorithm, helper);
    if (asked !== name) throw fault('unsupported-algorithm', helper, `unsupported algorithm \`${asked}\``);
  };

  const digest = (algorithm, data) => {
    const helper = 'crypto.subtle.digest';
    need(helper, algorithm, data);
    nameOf(algorithm, helper);
    return result(call('crypto.digest', { algorithm: plainHash(algorithm) }, buffer(data, helper)).bytes);
  };

  const sign = (algorithm, key, data) => {
    const helper = 'crypto.subtle.sign';
    need(helper, algorithm, key, data);
    only('HMAC', algorithm, helper);
    const secret = secretOf(key, ['HMAC'], 'sign', helper);
    const bytes = buffer(data, helper);
    return result(call('crypto.hmac', { hash: key.algorithm.hash, parts: [secret.length, bytes.length] }, join(secret, bytes)).bytes);
  };

  const verify = (algorithm, key, signature, data) => {
    const helper = 'crypto.subtle.verify';
    need(helper, algorithm, key, signature, data);
    only('HMAC', algorithm, helper);
    const parts = [secretOf(key, ['HMAC'], 'verify', helper), buffer(signature, helper), buffer(data, helper)];
    return call('crypto.hmacVerify', { hash: key.algorithm.hash, parts: parts.map((part) => part.length) }, join(...parts)).value;
  };

  const gcm = (operation, usage) => (algorithm, key, data) => {
    const helper = `crypto.subtle.${usage}`;
    need(helper, algorithm, key, data);
    only('AES-GCM', algorithm, helper);
    if (algorithm.iv === undefined) throw fault('missing-args', helper, 'the iv is missing');
    if (![undefined, 128].includes(algorithm.tagLength)) throw fault('unsupported-algorithm', helper, 'only a tag of 128 bits is supported');
    const secret = secretOf(key, ['AES-GCM'], usage, helper);
    const aad = algorithm.additionalData === undefined ? new Uint8Array(0) : buffer(algorithm.additionalData, helper);
    const parts = [secret, buffer(algorithm.iv, helper), aad, buffer(data, helper)];
    return result(call(operation, { parts: parts.map((part) => part.length) }, join(...parts)).bytes);
  };

  const derive = (algorithm, key, bits, usage, helper) => {
    need(helper, algorithm, key);
    const name = nameOf(algorithm, helper);
    if (!Number.isInteger(bits) || bits <= 0 || bits % 8) throw fault('invalid-length', helper, 'the length must be a multiple of 8 bits');
    const hash = hashOf(algorithm.hash, helper);
    const length = bits / 8;
    const salt = algorithm.salt === undefined ? new Uint8Array(0) : buffer(algorithm.salt, helper);
    if (name === 'PBKDF2') {
      const parts = [secretOf(key, [name], usage, helper), salt];
      const asked = { hash, length, iterations: algorithm.iterations, parts: parts.map((part) => part.length) };
      return call('crypto.pbkdf2', asked, join(...parts)).bytes;
    }
    if (name === 'HKDF') {
      const info = algorithm.info === undefined ? new Uint8Array(0) : buffer(algorithm.info, helper);
      const parts = [secretOf(key, [name], usage, helper), salt, info];
      return call('crypto.hkdf', { hash, length, parts: parts.map((part) => part.length) }, join(...parts)).bytes;
    }
    throw fault('unsupported-algorithm', helper, `unsupported algorithm \`${name}\``);
  };

  const deriveBits = (algorithm, key, bits) => result(derive(algorithm, key, bits, null, 'crypto.subtle.deriveBits'));

  const deriveKey = (algorithm, key, wanted, extractable, usages) => {
    const helper = 'crypto.subtle.deriveKey';
    need(helper, algorithm, key, wanted);
    const sizes = { 'SHA-1': 512, 'SHA-256': 512, 'SHA-384': 1024, 'SHA-512': 1024 };
    const isHmac = nameOf(wanted, helper) === 'HMAC';
    const bits = wanted.length ?? (isHmac ? sizes[hashOf(wanted.hash, helper).name] : undefined);
    return makeKey(derive(algorithm, key, bits, null, helper), wanted, usages, helper, extractable);
  };

  const getRandomValues = (...all) => {
    const helper = 'crypto.getRandomValues';
    const [target] = all;
    if (all.length === 0 || target === undefined || target === null) throw fault('missing-args', helper, 'an array to fill is missing');
    const isView = ArrayBuffer.isView(target);
    const isFloat = isView && (/^Float/.test(target[Symbol.toStringTag]) || target instanceof DataView);
    if (isFloat || typeof target !== 'object' || typeof target.length !== 'number') throw fault('not-array', helper, 'only an array of integers can be filled');
    const count = isView ? target.byteLength : target.length;
    if (!(count <= RANDOM_BYTES_MAX)) throw fault('array-too-large', helper, `more than ${RANDOM_BYTES_MAX} bytes asked for at once`);
    const bytes = call('crypto.randomBytes', { count }).bytes;
    // A wide array gets random bits in all of each element, not in a byte of it.
    if (isView) new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(bytes);
    else for (let i = 0; i < count; i++) target[i] = bytes[i];
    return target;
  };

  const subtle = Object.freeze({
    digest, importKey, exportKey, generateKey, sign, verify,
    encrypt: gcm('crypto.encrypt', 'encrypt'),
    decrypt: gcm('crypto.decrypt', 'decrypt'),
    deriveBits, deriveKey,
  });
  const randomUUID = () => call('crypto.randomUUID', {}).value;

  return { crypto: Object.freeze({ subtle, getRandomValues, randomUUID }), CryptoKey };
}
