// TextEncoder and TextDecoder, UTF-8 only.
(host) => {
  const { encode, decode } = host;
  const { isView } = ArrayBuffer;
  const bytesOf = (input) => {
    if (input instanceof ArrayBuffer) return new Uint8Array(input);
    if (isView(input)) return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
    throw new TypeError("input is neither a buffer nor a view of one");
  };

  class TextEncoder {
    get encoding() {
      return "utf-8";
    }
    encode(input = "") {
      return encode(`${input}`);
    }
    encodeInto(source, target) {
      const text = `${source}`;
      let read = 0;
      let written = 0;
      while (read < text.length) {
        const width = text.codePointAt(read) > 0xffff ? 2 : 1;
        const bytes = encode(text.slice(read, read + width));
        if (written + bytes.length > target.length) break;
        target.set(bytes, written);
        written += bytes.length;
        read += width;
      }
      return { read, written };
    }
  }

  // How many bytes at the end may be the start of a character still to come.
  const unfinished = (bytes) => {
    for (let back = 1; back <= 3 && back <= bytes.length; back++) {
      const byte = bytes[bytes.length - back];
      if (byte < 0x80) return 0;
      if (byte >= 0xc0) {
        const need = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
        return need > back ? back : 0;
      }
    }
    return 0;
  };

  class TextDecoder {
    #fatal;
    #ignoreBOM;
    #left = new Uint8Array(0);
    #begun = false;
    constructor(label = "utf-8", options = {}) {
      const name = `${label}`.trim().toLowerCase();
      if (name !== "utf-8" && name !== "utf8" && name !== "unicode-1-1-utf-8") {
        throw new RangeError(`unknown encoding: ${label}`);
      }
      this.#fatal = !!options?.fatal;
      this.#ignoreBOM = !!options?.ignoreBOM;
    }
    get encoding() {
      return "utf-8";
    }
    get fatal() {
      return this.#fatal;
    }
    get ignoreBOM() {
      return this.#ignoreBOM;
    }
    decode(input, options) {
      const more = !!options?.stream;
      let bytes = input === undefined ? new Uint8Array(0) : bytesOf(input);
      if (this.#left.length > 0) {
        const whole = new Uint8Array(this.#left.length + bytes.length);
        whole.set(this.#left);
        whole.set(bytes, this.#left.length);
        bytes = whole;
        this.#left = new Uint8Array(0);
      }
      if (more) {
        const keep = unfinished(bytes);
        this.#left = bytes.slice(bytes.length - keep);
        bytes = bytes.subarray(0, bytes.length - keep);
      }
      let text = decode(bytes, this.#fatal);
      if (text === null) throw new TypeError("the bytes are not well-formed UTF-8");
      if (!this.#begun && !this.#ignoreBOM && text[0] === "\ufeff") text = text.slice(1);
      this.#begun = more && (this.#begun || text.length > 0);
      return text;
    }
  }

  host.reserve("TextEncoder", TextEncoder);
  host.reserve("TextDecoder", TextDecoder);
}
