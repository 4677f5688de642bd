/**
 * Writes the wire format of protobuf into memory that is used again.
 *
 * @module
 */

const UTF8 = new TextEncoder();
/** The units of 512 nanoseconds in a second, and the nanoseconds in a unit. */
const [UNITS, UNIT] = [1_953_125, 512];
const WORD = 2 ** 32;

/** Bytes of protobuf. Other methods write without a check, so call `ensure()` before them. */
export class ProtobufWriter {
  #out: Uint8Array<ArrayBuffer> = new Uint8Array(512);
  /** Writes four bytes of `#out` at once, at any index. */
  #view: DataView = new DataView(this.#out.buffer);
  #at = 0;

  /** The number of bytes. */
  get length(): number {
    return this.#at;
  }

  /** Moves to an offset. `prepend()` writes the bytes before it. */
  moveTo(offset: number): void {
    this.ensure(Math.max(0, offset - this.#at));
    this.#at = offset;
  }

  /** Enlarges the memory if it cannot contain this many more bytes. */
  ensure(length: number): void {
    if (this.#at + length <= this.#out.length) return;
    const larger = new Uint8Array(2 * (this.#at + length));
    larger.set(this.#out.subarray(0, this.#at));
    this.#out = larger;
    this.#view = new DataView(larger.buffer);
  }

  /** Writes one byte. */
  byte(value: number): void {
    this.#out[this.#at++] = value;
  }

  /** Replaces one byte. */
  set(at: number, value: number): void {
    this.#out[at] = value;
  }

  /** Writes bytes. */
  bytes(bytes: Uint8Array): void {
    this.#out.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** Writes a field whose value is a range of at most 31 of these words. */
  words(tag: number, from: Uint32Array, { at, length }: WordRange): void {
    const view = this.#view;
    let to = this.#at;
    this.#out[to++] = tag;
    this.#out[to++] = 4 * length;
    for (let index = at; index < at + length; index++, to += 4) {
      view.setUint32(to, from[index] as number, true);
    }
    this.#at = to;
  }

  /** Writes a number of at most 53 bits in groups of 7 bits. */
  varint(value: number): void {
    let rest = value;
    while (rest >= 0x80) {
      this.#out[this.#at++] = rest % 0x80 | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#out[this.#at++] = rest;
  }

  /** Writes the decimal digits of a number. */
  digits(value: number, count: number): void {
    let rest = value;
    for (let digit = count - 1; digit >= 0; digit--) {
      const next = Math.floor(rest / 10);
      this.#out[this.#at + digit] = 48 + rest - 10 * next;
      rest = next;
    }
    this.#at += count;
  }

  /**
   * Replaces 8 bytes by a time, in seconds and further nanoseconds, as 64 bits of nanoseconds.
   * These are too many bits for a number of JavaScript.
   */
  nanoseconds(at: number, seconds: number, nanoseconds: number): void {
    const units = seconds * UNITS; // exact
    let high = Math.floor(units / (WORD / UNIT));
    let low = (units - high * (WORD / UNIT)) * UNIT + nanoseconds;
    if (low >= WORD) {
      low -= WORD;
      high++;
    }
    this.#view.setUint32(at, low, true);
    this.#view.setUint32(at + 4, high, true);
  }

  /** Writes bytes that end at an offset, and returns all bytes from their start. */
  prepend(offset: number, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    this.#out.set(bytes, offset - bytes.length);
    return this.#out.subarray(offset - bytes.length, this.#at);
  }
}

/** A range of at most 31 words. */
interface WordRange {
  readonly at: number;
  readonly length: number;
}

/** Returns the UTF-8 of a text. */
export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return UTF8.encode(text);
}

/** Returns a field with its length, and the given bytes. */
export function field(tag: number, ...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return joinBytes(number(tag, length), ...parts);
}

/** Returns a field that is a number. */
export function number(tag: number, value: number): Uint8Array<ArrayBuffer> {
  const writer = new ProtobufWriter();
  writer.byte(tag);
  writer.varint(value);
  return writer.prepend(0, new Uint8Array(0)).slice();
}

/** Returns all bytes in one array. */
export function joinBytes(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}
