/**
 * Requests whose methods PML does not know: they reach the server that they belong to, through the
 * rules.
 *
 * @module
 */

import assert from "node:assert/strict";
import { makeScenery } from "./attacks/stage.ts";
import { ERAS, type Json, type Message } from "./kit/json_rpc.ts";
import { denoCommand } from "./kit/pml_command.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";

const NOTES = "com.example/notes";
const SKILLS = "io.modelcontextprotocol/skills";

/** Opens a client of a PML with servers that have declared their extensions. */
async function opened(
  era: typeof ERAS[number],
  { servers, rules = {} }: {
    readonly servers: Readonly<Record<string, readonly string[]>>;
    readonly rules?: object;
  },
) {
  const names = Object.keys(servers);
  const ws = await makeScenery({
    limits: { first_list_ms: 60_000 },
    pml: {
      version: 1,
      gateway: { tools_exposure: "full_proxy" },
      permissions: { allow: names.map((name) => `${name}:echo`), ...rules },
      mcpServers: Object.fromEntries(
        Object.entries(servers).map(([name, extensions]) => {
          const [command, ...args] = denoCommand("tests/kit/extension_server.ts");
          return [name, { command, args: [...args, ...extensions] }];
        }),
      ),
    },
  });
  const pml = new RawStdio(ws, { era });
  await pml.open();
  // A server declares its extensions when it is started.
  for (const name of names) {
    await until(async () => {
      const { result } = await pml.request("tools/call", { name: `${name}__echo`, arguments: {} });
      return result !== undefined && !result.isError;
    });
  }
  return {
    pml,
    [Symbol.asyncDispose]: async () => {
      await pml[Symbol.asyncDispose]();
      await ws[Symbol.asyncDispose]();
    },
  };
}

function codeOf({ error }: Message): unknown {
  return error?.code;
}

for (const era of ERAS) {
  Deno.test(`a request with an unknown method reaches the server of its extension, on ${era}`, async () => {
    const servers = { notes: [NOTES], skills: [SKILLS], plain: [] };
    const allow = ["notes", "skills", "plain"].map((name) => `${name}:echo`);
    const rules = { allow: [...allow, "notes:@method(notes/list)", "skills:@method(skills/list)"] };
    await using scene = await opened(era, { servers, rules });
    for (const method of ["notes/list", "skills/list"]) {
      const { result } = await scene.pml.request(method, { own: { a: [1] }, cursor: "c" });
      assert.equal(result?.method, method);
      const { own, cursor } = result?.params as Json;
      assert.deepEqual([own, cursor], [{ a: [1] }, "c"]);
    }
    // Two servers may have it, and none is asked.
    const other = await scene.pml.request("later/get", {});
    assert.equal(codeOf(other), -32601);
    assert.match(JSON.stringify(other.error), /notes, skills/);
  });

  Deno.test(`a request with an unknown method asks, unless a rule denies it, on ${era}`, async () => {
    const servers = { notes: [NOTES] };
    const rules = { deny: ["notes:@method(notes/delete)"] };
    await using scene = await opened(era, { servers, rules });
    const asked = await scene.pml.request("notes/list", {});
    assert.match(JSON.stringify(asked), /@method\(notes\/list\)/, "a question, or its handle");
    assert.doesNotMatch(JSON.stringify(asked), /"method":"notes\/list"/, "the server was asked");
    const denied = await scene.pml.request("notes/delete", {});
    assert.match(JSON.stringify(denied), /PERMISSION_DENIED|denied/i);
    // The only server with an extension that PML does not know gets any other method.
    const later = await scene.pml.request("later/get", {});
    assert.match(JSON.stringify(later), /@method\(later\/get\)/);
  });
}
