import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { type Message, paramsFor } from "../kit/json_rpc.ts";
import { rssOf } from "../kit/procwatch.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { waitUntil } from "../kit/wait.ts";
import { endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

const MB = 1024 * 1024;
const SEED = 20_260_728;

/** A line, and the error with the id null that answers it, or undefined if it is ignored. */
type Line = readonly [name: string, line: string | Uint8Array, code?: number];

const LINES: readonly Line[] = [
  ["an empty line", ""],
  ["blanks", " \t  "],
  ["a carriage return", "\r"],
  ["a byte order mark alone", "\uFEFF"],
  ["words", "hello?", -32700],
  ["half a frame", '{"jsonrpc":"2.0","id":', -32700],
  ["a frame with a comma too many", '{"jsonrpc":"2.0","id":1,"method":"tools/list",}', -32700],
  ["two frames on one line", '{"jsonrpc":"2.0","method":"a"} {"jsonrpc":"2.0"}', -32700],
  ["an HTTP request", "POST /mcp HTTP/1.1\r", -32700],
  ["a header of LSP", "Content-Length: 42\r", -32700],
  ["UTF-16", new Uint8Array(Buffer.from('{"jsonrpc":"2.0"}', "utf16le")), -32700],
  ["a NUL", "\0", -32700],
  ["invalid UTF-8 in a string", bytesOf('{"jsonrpc":"2.0","method":"', [0xff], '"}'), -32700],
  ["an overlong form", bytesOf('{"jsonrpc":"2.0","method":"', [0xc0, 0xaf], '"}'), -32700],
  ["a surrogate in UTF-8", bytesOf('{"a":"', [0xed, 0xa0, 0x80], '"}'), -32700],
  ["half a character", bytesOf('"', [0xe6, 0xbc], '"'), -32700],
  ["deep brackets", "[".repeat(100_000), -32700],
  ["a batch", '[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', -32600],
  ["an empty batch", "[]", -32600],
  ["a text", '"tools/list"', -32600],
  ["null", "null", -32600],
  ["nothing in it", '{"jsonrpc":"2.0"}', -32600],
  ["the id null", '{"jsonrpc":"2.0","id":null,"method":"tools/list"}', -32600],
  ["a broken id", '{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}', -32600],
  ["an id beyond whole numbers", '{"jsonrpc":"2.0","id":1e400,"method":"tools/list"}', -32600],
  ["an id that is an object", '{"jsonrpc":"2.0","id":{},"method":"tools/list"}', -32600],
  ["an answer to nothing", '{"jsonrpc":"2.0","id":99,"result":{}}'],
  ["a refusal of nothing", '{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"no"}}'],
  ["an unknown notification", '{"jsonrpc":"2.0","method":"notifications/none"}'],
];

Deno.test("invalid lines are reported once or ignored (ST1)", async () => {
  await using scene = await makeScene({ era: "2026-07-28" });
  const { ws, pml } = scene;
  for (const [name, line, code] of LINES) {
    for (const end of ["\n", "\r\n"]) {
      const answers = await answersTo(pml, bytesOf(line, end));
      const codes = answers.map(({ id, error }) => [id, error?.code]);
      assert.deepEqual(codes, code === undefined ? [] : [[null, code]], name);
    }
  }
  await endWell(ws, pml, { calls: 1 });
});

Deno.test("invalid data before initialize does no harm (ST1)", async () => {
  const garbage = "GET / HTTP/1.1\r\nHost: evil\r\n\r\n\0\0\n[]\n";
  await using scene = await makeScene({ era: "2025-11-25", first: garbage });
  await endWell(scene.ws, scene.pml, { calls: 1 });
});

Deno.test("a thousand random lines get a thousand refusals (ST1)", async () => {
  await using scene = await makeScene({ era: "2026-07-28" });
  const { ws, pml } = scene;
  const lines = fc.sample(fc.uint8Array({ maxLength: 300 }), { numRuns: 1000, seed: SEED })
    .map((line) => line.filter((byte) => byte !== 10));
  const answers = await answersTo(pml, bytesOf(...lines.flatMap((line) => [line, "\n"])));
  const wanted = lines.filter((line) => !isBlank(line)).length;
  assert.equal(answers.length, wanted);
  for (const { id, error } of answers) {
    assert.equal(id, null);
    assert.ok(error?.code === -32700 || error?.code === -32600, JSON.stringify(error));
  }
  await endWell(ws, pml, { calls: 1 });
});

Deno.test("a frame with a changed byte gets at most one answer (ST1)", async () => {
  await using scene = await makeScene({ era: "2025-11-25" });
  const { ws, pml } = scene;
  const changes = fc.sample(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(255)), {
    numRuns: 400,
    seed: SEED,
  });
  const told = changes.map(([where, byte], at) => {
    const frame = readFrame(pml, { id: `changed ${at}`, path: "good.txt" });
    frame[Math.floor(where * (frame.length - 1))] = byte === 10 ? 0 : byte;
    return { frame, ...expectedOf(frame) };
  });
  for (const { id } of told) if (id !== undefined) pml.noteAsked(id);
  const sent = bytesOf(...told.flatMap(({ frame }) => [frame, "\n"]));
  const answers = await answersTo(pml, sent, { settles: told.map(({ id }) => id) });
  const refusals = answers.filter(({ id }) => id === null).length;
  assert.equal(refusals, told.filter(({ refused }) => refused).length);
  await endWell(ws, pml);
});

Deno.test("a frame may be cut at every byte (ST2)", async () => {
  const name = "naïve 漢字 😀.txt";
  await using scene = await makeScene({ era: "2026-07-28", files: { [name]: "é漢😀" } });
  const { ws, pml } = scene;
  const length = readFrame(pml, { id: "cut 0000", path: name }).length;
  let rest = new Uint8Array();
  for (let cut = 0; cut <= length; cut++) {
    const id = `cut ${String(cut).padStart(4, "0")}`;
    const frame = bytesOf(readFrame(pml, { id, path: name }), "\n");
    // The answer to the frame before proves that PML read the first part separately.
    await pml.sendBytes(bytesOf(rest, frame.subarray(0, cut)));
    if (cut > 0) assert.equal(textOf(await pml.expect(idBefore(cut))), "é漢😀");
    pml.noteAsked(id);
    rest = frame.subarray(cut);
  }
  await pml.sendBytes(rest);
  assert.equal(textOf(await pml.expect(idBefore(length + 1))), "é漢😀");
  await endWell(ws, pml, { calls: length + 2 });
});

Deno.test("ten frames in one chunk get ten answers (ST2)", async () => {
  const files = Object.fromEntries(
    Array.from({ length: 10 }, (_, at) => [`${at}.txt`, `${at}!`]),
  );
  await using scene = await makeScene({ era: "2025-11-25", files });
  const { ws, pml } = scene;
  const frames = Object.keys(files).map((path) => readFrame(pml, { id: path, path }));
  const answers = Object.keys(files).map((path) => pml.expect(path));
  await pml.sendBytes(bytesOf(...frames.flatMap((frame) => [frame, "\r\n"])));
  assert.deepEqual((await Promise.all(answers)).map(textOf), Object.values(files));
  await endWell(ws, pml, { calls: 11 });
});

Deno.test("a line over the limit is reported once, and the next is handled (ST3)", async () => {
  await using scene = await makeScene({ era: "2026-07-28", limits: { input_bytes: 4096 } });
  const { ws, pml } = scene;
  const frame = readFrame(pml, { id: "fits", path: "good.txt" });
  const padded = (length: number) => bytesOf(frame, " ".repeat(length - frame.length));
  const [fits] = await answersTo(pml, bytesOf(padded(4096), "\n"), { settles: ["fits"] });
  assert.equal(textOf(fits ?? {}), "good\n");
  // The text after the limit looks like a separate frame.
  for (const line of [padded(4097), bytesOf("x".repeat(4096), frame), "y".repeat(3 * MB)]) {
    const [refusal, ...more] = await answersTo(pml, bytesOf(line, "\n"));
    assert.match(refusal?.error?.message ?? "", /^INPUT_TOO_LARGE: .* 4096 bytes$/);
    assert.equal(refusal?.error?.code, -32600);
    assert.deepEqual(more, []);
  }
  await endWell(ws, pml, { calls: 2 });
});

Deno.test("a line without an end takes no memory, and is reported once (ST3)", async () => {
  // The test measures its memory.
  await using scene = await makeScene({ ownProcess: true, limits: { input_bytes: 4096 } });
  const { ws, pml } = scene;
  await pml.callTool("filesystem__read_file", { path: "good.txt" });
  const before = await rssOf(pml.pid);
  const chunk = new Uint8Array(MB).fill(0x7b);
  for (let sent = 0; sent < 256; sent++) await pml.sendBytes(chunk);
  const grown = await rssOf(pml.pid) - before;
  assert.ok(grown < 128 * MB, `${grown} bytes more`);
  const answers = await answersTo(pml, bytesOf("\n"));
  assert.equal(answers.length, 0, "told before the end came");
  assert.equal(pml.messages.filter(({ id }) => id === null).length, 1);
  await endWell(ws, pml, { calls: 2 });
});

Deno.test("odd characters go in and out as one line of JSON each (ST4)", async () => {
  const odd = 'a\u2028b\u2029c\u0085d\u000be\u0000f\ud83d\ude00\ufeff"\\\r\n';
  await using scene = await makeScene({ era: "2025-11-25" });
  const { ws, pml } = scene;
  const written = await pml.callTool("filesystem__write_file", { path: "odd.txt", content: odd });
  assert.equal(written.result?.isError, undefined);
  const read = await pml.callTool("filesystem__read_media_file", { path: "odd.txt" });
  const block = (read.result?.content as unknown as [{ resource: { blob: string } }])[0];
  assert.equal(Buffer.from(block.resource.blob, "base64").toString(), odd);
  for (const path of ["\ud800", "a\udc00b", "\ud83d\u2028\n"]) {
    // Written without the kit: the escape is plain ASCII, the character does not exist in UTF-8.
    const answer = await pml.callTool("filesystem__get_file_info", { path });
    assert.equal(answer.result?.isError, true, JSON.stringify(answer));
  }
  // The kit splits at every newline and parses each line; this asserts that the bytes are UTF-8.
  new TextDecoder("utf-8", { fatal: true }).decode(pml.stdoutBytes);
  await endWell(ws, pml, { calls: 6 });
});

/** Sends bytes, then a request; returns the messages before its answer. */
async function answersTo(
  pml: RawStdio,
  bytes: Uint8Array,
  { settles = [] }: { readonly settles?: readonly (string | undefined)[] } = {},
): Promise<readonly Message[]> {
  const before = pml.messages.length;
  await pml.sendBytes(bytes);
  const id = `after ${before}`;
  await pml.request("tools/list", {}, { id });
  const waiting = settles.filter((one) => one !== undefined);
  await Promise.all(waiting.map((one) => answered(pml, one)));
  return pml.messages.slice(before).filter((message) => message.id !== id);
}

async function answered(pml: RawStdio, id: string): Promise<void> {
  pml.noteAsked(id);
  const came = await waitUntil(() => pml.messages.some((message) => message.id === id));
  assert.ok(came, `no answer to ${id}`);
}

/** Returns a request to read a file, in the form of the revision. */
function readFrame(
  pml: RawStdio,
  { id, path }: { readonly id: string; readonly path: string },
): Uint8Array<ArrayBuffer> {
  const params = { name: "filesystem__read_file", arguments: { path } };
  const request = { jsonrpc: "2.0", id, method: "tools/call" };
  return bytesOf(JSON.stringify({ ...request, params: paramsFor(pml.era, params, {}) }));
}

/** Returns by JSON alone whether a line is a request with an id, or is refused. */
function expectedOf(line: Uint8Array): { readonly id?: string; readonly refused: boolean } {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(line);
    const value = JSON.parse(text);
    const { jsonrpc, id, method, params } = value;
    const whole = jsonrpc === "2.0" && typeof method === "string";
    const fits = params === undefined || (typeof params === "object" && params !== null);
    // A request is refused with its id.
    const hasId = "method" in value && typeof id === "string";
    if ((!whole || !fits) && !hasId) return { refused: true };
    return id === undefined ? { refused: false } : { id, refused: false };
  } catch {
    return { refused: true };
  }
}

function idBefore(cut: number): string {
  return `cut ${String(cut - 1).padStart(4, "0")}`;
}

function isBlank(line: Uint8Array): boolean {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(line).trim() === "";
  } catch {
    return false;
  }
}

function bytesOf(
  ...parts: readonly (string | Uint8Array | readonly number[])[]
): Uint8Array<ArrayBuffer> {
  return new Uint8Array(
    Buffer.concat(
      parts.map((part) => typeof part === "string" ? Buffer.from(part) : Uint8Array.from(part)),
    ),
  );
}
