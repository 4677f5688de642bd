/**
 * Requests with unknown methods: rules decide about them, and they reach the server that declared
 * the extension.
 *
 * @module
 */

import assert from "node:assert/strict";
import { DRAWINGS, extensionScene, NOTES } from "./extension_scene.ts";
import { ERAS, type Json, type Message } from "./kit/json_rpc.ts";
import { WAYS } from "./kit/raw_stdio.ts";
import { until } from "./kit/wait.ts";

function codeOf({ error }: Message): unknown {
  return error?.code;
}

for (const era of ERAS) {
  Deno.test(`a request with an unknown method reaches the server of its extension, on ${era}`, async () => {
    const servers = { notes: [NOTES], drawings: [DRAWINGS], plain: [] };
    const rules = { allow: ["notes:@method(notes/list)", "drawings:@method(drawings/list)"] };
    await using scene = await extensionScene(era, { servers, rules });
    for (const method of ["notes/list", "drawings/list"]) {
      const { result } = await scene.pml.request(method, { own: { a: [1] }, cursor: "c" });
      assert.equal(result?.method, method);
      const { own, cursor } = result?.params as Json;
      assert.deepEqual([own, cursor], [{ a: [1] }, "c"]);
    }
    // Two servers may support it, so that PML asks neither.
    const other = await scene.pml.request("later/get", {});
    assert.equal(codeOf(other), -32601);
    assert.match(JSON.stringify(other.error), /drawings, notes/);
  });

  Deno.test(`a request with an unknown method asks, unless a rule denies it, on ${era}`, async () => {
    const servers = { notes: [NOTES] };
    const rules = { deny: ["notes:@method(notes/delete)"] };
    await using scene = await extensionScene(era, { servers, rules });
    const request = await scene.pml.request("notes/list", {});
    assert.match(JSON.stringify(request), /@method\(notes\/list\)/, "a question, or its handle");
    assert.doesNotMatch(JSON.stringify(request), /"method":"notes\/list"/, "the server was asked");
    const denied = await scene.pml.request("notes/delete", {});
    assert.match(JSON.stringify(denied), /PERMISSION_DENIED|denied/i);
    // The only server with an unknown extension gets any other method.
    const later = await scene.pml.request("later/get", {});
    assert.match(JSON.stringify(later), /@method\(later\/get\)/);
  });
}

const ASK = { method: "notes/pick", params: { own: { a: [1] }, _meta: { "x/y": 1, "pml/z": 2 } } };
const DECLARED = { extensions: { [NOTES]: { deep: true } } };

/** Returns the answer of a server's request, or the code of its error, in either revision. */
function saidTo(value: unknown): unknown {
  const { result, error, one } = value as Record<string, Json>;
  return result ?? one ?? error?.code;
}

for (const { era, door, on } of WAYS) {
  for (const kind of [[], ["--modern"]]) {
    const behind = kind.length === 0 ? "an older server" : "a server of the newest revision";
    // PML asks a client of the newest revision nothing while a request of the client waits.
    Deno.test(`a request of ${behind} reaches a client that declared its extension, ${on}`, async () => {
      const asked: unknown[] = [];
      await using scene = await extensionScene(era, {
        servers: { notes: [...kind, NOTES] },
        rules: { allow: ["notes:@method(notes/pick)"] },
        door,
        capabilities: DECLARED,
        answer: (method, params) => {
          asked.push([method, params]);
          return { picked: 1, own: { b: null } };
        },
      });
      const able = await scene.valueOf("notes__able") as Json;
      assert.deepEqual(able.extensions, DECLARED.extensions);
      const answer = await scene.valueOf("notes__ask", ASK);
      assert.deepEqual(saidTo(answer), { picked: 1, own: { b: null } });
      const { method, params } = ASK;
      assert.deepEqual(asked, [[method, { ...params, _meta: { "x/y": 1 } }]]);
    });

    Deno.test(`a request of ${behind} is refused with its name, and logged, ${on}`, async () => {
      await using scene = await extensionScene(era, {
        servers: { notes: [...kind, NOTES] },
        rules: { allow: ["notes:@method(notes/pick)"] },
        door,
        answer: () => assert.fail("the client is asked"),
      });
      const odd = { ...ASK, method: "notes/pick\n2026 info  forged\u202e" };
      const undeclared = /not declare its extension/;
      const refusals = [[ASK, undeclared], [odd, undeclared], [
        { ...ASK, method: "tools/list" },
        /servers cannot request it/,
      ]] as const;
      for (const [request, why] of refusals) {
        const { result } = await scene.call("notes__ask", request);
        if (kind.length === 0) {
          assert.match(JSON.stringify(result), /-32601/);
          assert.match(JSON.stringify(result), why);
        } else assert.equal(result?.isError, true);
      }
      assert.match(scene.pml.stderr, /"notes\/pick" was refused/);
      assert.doesNotMatch(scene.pml.stderr, /^2026 info/m);
    });
  }
}

Deno.test("a request of a server asks the user, unless a rule denies it", async () => {
  const asked: Json[] = [];
  await using scene = await extensionScene("2025-11-25", {
    servers: { notes: [NOTES] },
    rules: { deny: ["notes:@method(notes/drop)"] },
    capabilities: { ...DECLARED, elicitation: { form: {} } },
    answer: (method, params) => {
      asked.push({ method, params } as unknown as Json);
      return method === "elicitation/create"
        ? { action: "accept", content: { answer: "Yes" } }
        : { picked: 1 };
    },
  });
  assert.deepEqual(saidTo(await scene.valueOf("notes__ask", ASK)), { picked: 1 });
  assert.deepEqual(asked.map(({ method }) => method), ["elicitation/create", "notes/pick"]);
  assert.match(String(asked[0]?.params?.message), /to your client/);
  const denied = await scene.valueOf("notes__ask", { ...ASK, method: "notes/drop" }) as Json;
  assert.match(JSON.stringify(denied.error), /deny rule/);
  assert.equal(asked.length, 2);
  // The same rules apply outside of calls.
  await scene.call("notes__ask", { ...ASK, isLate: true, id: "late" });
  await until(() => asked.length === 4);
  await until(async () => (await scene.valueOf("notes__heard") as Json[]).length > 0);
  const [late] = await scene.valueOf("notes__heard") as Json[];
  assert.deepEqual(saidTo(late), { picked: 1 });
});

Deno.test("a request of a server keeps its id, and the error of the client comes back", async () => {
  await using scene = await extensionScene("2025-11-25", {
    servers: { notes: [NOTES] },
    rules: { allow: ["notes:@method(notes/pick)"] },
    capabilities: DECLARED,
    onMessage: ({ id, method }) => {
      if (method !== "notes/pick") return;
      const error = { code: -32055, message: "not now", data: { a: 1 } };
      void scene.pml.sendJson({ jsonrpc: "2.0", id, error });
    },
  });
  for (const id of ["", "\u202e", 0, -7, "x".repeat(999)]) {
    const answer = await scene.valueOf("notes__ask", { ...ASK, id });
    const error = { code: -32055, message: "not now", data: { a: 1 } };
    assert.deepEqual(answer, { jsonrpc: "2.0", error });
  }
});

Deno.test("an unknown method of a client that can be asked is forwarded after a yes", async () => {
  for (const era of ERAS) {
    await using scene = await extensionScene(era, {
      servers: { notes: [NOTES] },
      answer: () => ({ action: "accept", content: { answer: "Yes" } }),
    });
    const params = { own: 1 };
    const first = await scene.pml.request("notes/list", params);
    const { requestState } = first.result ?? {};
    const inputResponses = { approval: { action: "accept", content: { answer: "Yes" } } };
    const answer = era === "2025-11-25"
      ? first
      : await scene.pml.request("notes/list", { ...params, requestState, inputResponses });
    assert.equal(answer.result?.method, "notes/list", JSON.stringify(answer));
  }
});

Deno.test("an unknown method whose name begins with tasks/ asks, too", async () => {
  await using scene = await extensionScene("2025-11-25", { servers: { notes: [NOTES] } });
  const request = await scene.pml.request("tasks/other", {});
  assert.match(JSON.stringify(request.error), /@method\(tasks\/other\)/);
});
