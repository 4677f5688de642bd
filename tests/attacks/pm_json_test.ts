import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { ERAS, type Message, paramsFor } from "../kit/json_rpc.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

const OUTSIDE = '"../outside/canary.txt"';
const RULES = {
  version: 1,
  permissions: { allow: ["filesystem:read_file"], deny: ["filesystem:remove_file"] },
};

/** The error of an invalid request, from the SDK or from PML. */
const REFUSED = /^-3260|^BAD_REQUEST$/;

/** Arguments of `read_file` as written in the frame, and the code or the text of the answer. */
const ARGUMENTS: readonly (readonly [string, RegExp])[] = [
  [`{"path":"good.txt","path":${OUTSIDE}}`, /^PATH_OUTSIDE_WORKSPACE$/],
  [`{"path":${OUTSIDE},"path":"good.txt"}`, /^good\n$/],
  [`{"path":${OUTSIDE},"p\\u0061th":"good.txt"}`, /^good\n$/],
  [`{"path":"good.txt","__proto__":{"path":${OUTSIDE}}}`, /^BAD_ARGUMENTS$|^good\n$/],
  ['{"__proto__":{"path":"good.txt"}}', /^BAD_ARGUMENTS$/],
  ['{"path":"good.txt","constructor":{"prototype":{"path":"x"}}}', /^BAD_ARGUMENTS$/],
  ['{"constructor":{"prototype":{"path":"good.txt"}}}', /^BAD_ARGUMENTS$/],
  [`{"path":"good.txt","Path":${OUTSIDE}}`, /^BAD_ARGUMENTS$/],
  ['{"Path":"good.txt"}', /^BAD_ARGUMENTS$/],
  ['{"path":"good.txt","head":1e400}', /^BAD_ARGUMENTS$/],
  ['{"path":"good.txt","head":-1e400}', /^BAD_ARGUMENTS$/],
  ['{"path":"good.txt","head":1.5}', /^BAD_ARGUMENTS$/],
  ['{"path":"good.txt","head":-0}', /^BAD_ARGUMENTS$/],
  ['{"path":"good.txt","head":"1"}', /^BAD_ARGUMENTS$/],
  ['{"path":"good.txt","head":9007199254740993}', /^good$/],
  ['{"path":["good.txt"]}', /^BAD_ARGUMENTS$/],
  ['{"path":{"toString":"good.txt"}}', /^BAD_ARGUMENTS$/],
  ['{"path":null}', /^BAD_ARGUMENTS$/],
  ['{"path":true}', /^BAD_ARGUMENTS$/],
  ["{}", /^BAD_ARGUMENTS$/],
  ["null", REFUSED],
  ["[]", REFUSED],
  ['["good.txt"]', REFUSED],
  ['"good.txt"', REFUSED],
  ["1", REFUSED],
  [`{"path":${nested(100)}}`, /^BAD_ARGUMENTS$/],
  [`{"path":${nested(100_000)}}`, /^BAD_ARGUMENTS$|^-3260|^BUG$/],
  [`{"path":"good.txt","x":${nested(100_000)}}`, /^BAD_ARGUMENTS$|^-3260|^BUG$/],
];

/** Members of `params` as written in the frame. */
const PARAMS: readonly (readonly [string, RegExp])[] = [
  ['"name":"filesystem__read_file","name":"filesystem__remove_file"', /^PERMISSION_DENIED$/],
  ['"name":"filesystem__remove_file","name":"filesystem__read_file"', /^good\n$/],
  ['"Name":"filesystem__remove_file","name":"filesystem__read_file"', /^good\n$/],
  ['"name":"filesystem__read_file","Name":"filesystem__remove_file"', /^good\n$/],
  ['"n\\u0061me":"filesystem__remove_file"', /^PERMISSION_DENIED$/],
  ['"__proto__":{"name":"filesystem__remove_file"}', REFUSED],
  ['"name":"filesystem__read_file","__proto__":{"name":"filesystem__remove_file"}', /^good\n$/],
  ['"name":["filesystem__read_file"]', REFUSED],
  ['"name":null', REFUSED],
  ['"tool":"filesystem__read_file"', REFUSED],
];

for (const era of ERAS) {
  Deno.test(`PML runs exactly the parsed frame that it checked, on ${era} (PM16)`, async () => {
    await using scene = await makeScene({ era, pml: RULES, capabilities: {} });
    const { ws, pml } = scene;
    for (const [args, wanted] of ARGUMENTS) {
      const answer = await sent(pml, `"name":"filesystem__read_file","arguments":${args}`);
      assertCame(answer, wanted, args);
    }
    for (const [members, wanted] of PARAMS) {
      const answer = await sent(pml, `${members},"arguments":{"path":"good.txt"}`);
      assertCame(answer, wanted, members);
    }
    assert.equal(await readFile(ws.file("good.txt"), "utf8"), "good\n");
    // No member of the frame remains in a prototype.
    assertCame(await sent(pml, '"name":"filesystem__read_file"'), /^BAD_ARGUMENTS$/, "nothing");
    await endWell(ws, pml);
  });

  Deno.test(`PML runs exactly the parsed frame that it asked about, on ${era} (PM16)`, async () => {
    const lines: string[] = [];
    await using scene = await makeScene({
      era,
      pml: RULES,
      capabilities: { elicitation: {} },
      answer: (_, params) => {
        lines.push(String(params.message));
        return { action: "accept", content: { answer: "Yes" } };
      },
    });
    const { ws, pml } = scene;
    const twice = '{"path":"a.txt","content":"first","path":"b.txt","content":"last"}';
    const args: Record<string, unknown> = JSON.parse(twice);
    // In the newer protocol the call is sent twice, with the same text.
    if (era === "2026-07-28") await pml.callTool("filesystem__write_file", args);
    else await sent(pml, `"name":"filesystem__write_file","arguments":${twice}`);
    assert.match(lines[0] ?? "", /"path": "b.txt"\n +"content": "last"\n\n"Always" allows/);
    assert.doesNotMatch(lines[0] ?? "", /a\.txt|first/);
    assert.equal(await readFile(ws.file("b.txt"), "utf8"), "last");
    assert.equal(await readFile(ws.file("a.txt"), "utf8").catch(() => "none"), "none");
    await endWell(ws, pml);
  });
}

/** Sends a call whose params begin with a text. */
async function sent(pml: RawStdio, members: string): Promise<Message> {
  const id = `raw ${pml.messages.length}`;
  const meta = JSON.stringify(paramsFor(pml.era, {}, {})).slice(1, -1);
  const params = `{${members}${meta === "" ? "" : `,${meta}`}}`;
  const answer = pml.expect(id);
  await pml.sendText(
    `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"tools/call","params":${params}}\n`,
  );
  return await answer;
}

function assertCame(answer: Message, wanted: RegExp, what: string): void {
  const came = codeOf(answer) ?? textOf(answer);
  assert.match(came, wanted, `${what.slice(0, 100)}: ${JSON.stringify(answer).slice(0, 500)}`);
}

function nested(depth: number): string {
  return "[".repeat(depth) + "]".repeat(depth);
}
