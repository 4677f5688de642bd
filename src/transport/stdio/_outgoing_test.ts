import assert from "node:assert/strict";
import fc from "fast-check";
import { LineReader } from "../../io/lines.ts";
import { MessageWriter } from "./_outgoing.ts";

/** An output that accepts a piece only when the test allows it. */
class Pipe {
  readonly pieces: Uint8Array[] = [];
  readonly sizes: number[] = [];
  readonly gone: unknown[] = [];
  readonly out: MessageWriter;
  #taken: (() => void) | undefined;

  constructor({ opens = false, unreadMs = 60_000 } = {}) {
    // The kernel copies a piece when the client reads. Until then its memory must not change.
    const write = async (piece: Uint8Array) => {
      await new Promise<void>((resolve) => opens ? setTimeout(resolve) : this.#taken = resolve);
      this.pieces.push(piece.slice());
    };
    this.out = new MessageWriter({ write }, unreadMs, {
      onWaiting: (size) => void this.sizes.push(size),
      onClientGone: (why) => void this.gone.push(why),
    });
  }

  get text(): string {
    return new TextDecoder().decode(Uint8Array.from(this.pieces.flatMap((piece) => [...piece])));
  }

  /** Reads the written data like a client. */
  async read(): Promise<void> {
    this.#taken?.();
    this.#taken = undefined;
    await new Promise((resolve) => setTimeout(resolve));
  }
}

Deno.test("Outgoing writes every byte in order for all message sizes", async () => {
  const sizes = fc.array(fc.oneof(fc.nat(50), fc.nat(600_000)), { minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(sizes, async (lengths) => {
      const pipe = new Pipe({ opens: true });
      const texts = lengths.map((length, at) => `${at}é😀`.repeat(length / 8));
      await Promise.all(texts.map((text) => pipe.out.write(text)));
      assert.equal(pipe.text, texts.map((text) => `${text}\n`).join(""));
      assert.equal(pipe.out.size, 0);
      assert.ok(pipe.pieces.every((piece) => piece.length <= 262_144));
    }),
    { numRuns: 30 },
  );
});

Deno.test("Outgoing does not change unread bytes when new messages arrive", async () => {
  const [slow, quick] = [new Pipe(), new Pipe({ opens: true })];
  const texts = [90_000, 10, 300_000, 70, 1_200_000, 5, 64_000].map((size, at) =>
    `${at}${"abcdefghij".repeat(size / 10)}`
  );
  const written = texts.map((text) => slow.out.write(text));
  for (let over = false; !over;) {
    // Another client, and programs that write long lines, use all unused memory.
    await quick.out.write("#".repeat(200_000));
    for (let program = 0; program < 4; program++) {
      const none = (): never => assert.fail("there is no line");
      new LineReader(1 << 20).push(new Uint8Array(400_000).fill(35), none);
    }
    await slow.read();
    over = await Promise.race([
      Promise.all(written).then(() => true),
      slow.read().then(() => false),
    ]);
  }
  assert.equal(slow.text, texts.map((text) => `${text}\n`).join(""));
});

Deno.test("Outgoing writes small messages of one turn in one piece", async () => {
  const pipe = new Pipe({ opens: true });
  await Promise.all(["a", "b", "c"].map((text) => pipe.out.write(text)));
  assert.deepEqual(pipe.pieces.length, 1);
  assert.deepEqual(pipe.sizes.at(-1), 0);
});

Deno.test("Outgoing writes each message as one line (GX2)", async () => {
  const pipe = new Pipe({ opens: true });
  await Promise.all(['{"a":\n{"b":1}\r\n}', '"c\u2028d"'].map((text) => pipe.out.write(text)));
  assert.equal(pipe.text, '{"a": {"b":1}  }\n"c\\u2028d"\n');
});

Deno.test("Outgoing drops an answer only before writing it starts, and lists waiting answers", async () => {
  const pipe = new Pipe();
  void pipe.out.write("x".repeat(300_000), "1");
  await pipe.read();
  void pipe.out.write("second", "2");
  void pipe.out.write("third", '"3"');
  void pipe.out.write("note");
  assert.deepEqual(pipe.out.answeredIds, ["1", "2", '"3"']);
  for (const request of ["1", "2", "9"]) pipe.out.drop(request);
  assert.deepEqual(pipe.out.answeredIds, ["1", '"3"']);
  for (let turn = 0; turn < 4; turn++) await pipe.read();
  assert.equal(pipe.text, `${"x".repeat(300_000)}\nthird\nnote\n`);
  assert.equal(pipe.out.size, 0);
  assert.deepEqual(pipe.out.answeredIds, []);
});

Deno.test("Outgoing does not mix adjacent positions of different buffers", async () => {
  const pipe = new Pipe({ opens: true });
  const texts = ["a".repeat(40_000), "b".repeat(10_000), "c".repeat(50_000), "d".repeat(1_000)];
  const written = texts.map((text, at) => pipe.out.write(text, `${at}`));
  pipe.out.drop("2");
  await Promise.all(written);
  assert.equal(pipe.text, texts.filter((_, at) => at !== 2).map((text) => `${text}\n`).join(""));
});

Deno.test("Outgoing reports a client that reads nothing, but not a slow one", async () => {
  const slow = new Pipe({ unreadMs: 400 });
  void slow.out.write("x".repeat(1_500_000), "1");
  for (let turn = 0; turn < 8; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    await slow.read();
  }
  assert.deepEqual([slow.gone, slow.out.size], [[], 0]);
  const never = new Pipe({ unreadMs: 50 });
  void never.out.write("y", "1");
  while (never.gone.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.match(String(never.gone[0]), / 50 ms/);
  assert.deepEqual(never.out.answeredIds, ["1"]);
});

const bytesOf = (text: string) => new TextEncoder().encode(text);

/** A client that reads late. Written data is consumed only when it reads. */
class Late {
  readonly out: MessageWriter;
  readonly #decoder = new TextDecoder();
  readonly #due = new Map<string, string>();
  #came = "";
  #going: Uint8Array = new Uint8Array();
  #taken = () => {};

  constructor(readonly own: string) {
    const write = (piece: Uint8Array) => {
      this.#going = piece;
      return new Promise<void>((resolve) => this.#taken = resolve);
    };
    const giveUp = (why: unknown) => assert.fail(String(why));
    this.out = new MessageWriter({ write }, 60_000, { onWaiting() {}, onClientGone: giveUp });
  }

  write(count: number): void {
    const [id, text] = [`${this.#due.size}`, this.own.repeat(count)];
    this.#due.set(id, `${text}\n`);
    void this.out.write(text, id);
  }

  /** Cancels the request of an earlier answer. `ago` counts back from the last one. */
  cancel(ago: number): void {
    const id = `${this.#due.size - 1 - ago}`;
    const { size } = this.out;
    this.out.drop(id);
    if (this.out.size < size) this.#due.set(id, "");
  }

  async read(): Promise<void> {
    this.#came += this.#decoder.decode(this.#going, { stream: true });
    this.#going = new Uint8Array();
    this.#taken();
    await new Promise((resolve) => setTimeout(resolve));
  }

  async readAll(): Promise<void> {
    while (this.out.size > 0) await this.read();
    const due = [...this.#due.values()].join("");
    assert.ok(this.#came === due, `what ${this.own} reads is its own`);
    this.#came = "";
    this.#due.clear();
  }
}

/** A server that writes in pieces, and reuses their memory immediately. */
class Pieces {
  readonly #reader = new LineReader(900_000, 700_000);
  #rest = "";

  constructor(readonly own: string) {}

  /** Writes pieces. Calls `meanwhile` before a line is read. */
  write(count: number, meanwhile: () => void): void {
    const text = this.own.repeat(count);
    const isEnd = count % 3 === 0;
    this.#rest += text;
    const piece = bytesOf(isEnd ? `${text}\n` : text);
    this.#reader.push(piece, (line) => {
      meanwhile();
      const { length } = bytesOf(this.#rest);
      assert.equal(line.kind, length > 900_000 ? "too-long" : length > 700_000 ? "cut" : "line");
      if (line.kind !== "line") return;
      assert.ok(new TextDecoder().decode(line.bytes) === this.#rest, `a line of ${this.own}`);
    });
    piece.fill(0);
    if (isEnd) this.#rest = "";
  }
}

Deno.test("clients that read late and servers that write in pieces never receive foreign bytes", async () => {
  const who = ["a", "é", "中", "😀"];
  const [clients, servers] = [who.map((own) => new Late(own)), who.map((own) => new Pieces(own))];
  const step = fc.tuple(fc.nat(3), fc.nat(3), fc.oneof(fc.nat(500), fc.nat(150_000)));
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 80 }), async (steps) => {
      for (const [at, what, count] of steps) {
        if (what === 0) clients[at]?.write(count);
        else if (what === 1) await clients[at]?.read();
        else if (what === 2) clients[at]?.cancel(count % 5);
        else servers[at]?.write(count, () => clients[at]?.write(count));
      }
      for (const client of clients) await client.readAll();
    }),
    { numRuns: 15 },
  );
});
