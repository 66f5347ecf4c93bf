const wide = crypto.getRandomValues(new Uint32Array(64));
const same = new Uint8Array(4);
const list = crypto.getRandomValues([0, 0, 0, 0]);
return {
  "crypto.randomUUID": [/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()), crypto.randomUUID() === crypto.randomUUID()],
  "crypto.getRandomValues": crypto.getRandomValues(same) === same,
  "crypto.getRandomValues-wide": wide.some((number) => number > 0xffffff),
  "crypto.getRandomValues-list": list.every((byte) => Number.isInteger(byte) && byte >= 0 && byte < 256),
  "crypto.getRandomValues-most": crypto.getRandomValues(new Uint8Array(65536)).length,
  "crypto.reason.array-too-large": await refusal(() => crypto.getRandomValues(new Uint8Array(65537))),
  "crypto.reason.not-array": [await refusal(() => crypto.getRandomValues("text")), await refusal(() => crypto.getRandomValues(new Float64Array(1)))],
  "crypto.reason.missing-args-random": await refusal(() => crypto.getRandomValues()),
};
