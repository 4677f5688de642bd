import assert from "node:assert/strict";
import { findTarget } from "./_unknown_methods.ts";

const CLIENT = { owner: {} };

/** Returns the server of a request, with its params, or the code and the text of the error. */
async function owned(
  method: string,
  params: Record<string, string>,
  extensions: Readonly<Record<string, readonly string[]>> = {},
): Promise<unknown> {
  const options = {
    servers: { extensions: () => new Map(Object.entries(extensions)) },
    tasks: {
      placeOf: (id: string, client: object) =>
        id === "own" && client === CLIENT ? { server: "tasks", id: "there" } : undefined,
    },
    offers: {
      findResource: (uri: string) =>
        uri === "a:b"
          ? Promise.resolve({ server: "files", name: "b" })
          : Promise.reject(new Error("unknown")),
    },
  };
  return await findTarget({ method, params, client: CLIENT }, options)
    .catch(({ code, message }) => [code, message]);
}

const NOTES = "com.example/notes";
const DRAWINGS = "com.example/drawings";

Deno.test("a request belongs to the owner of its task or URI, under the names that it has there", async () => {
  const all = { notes: [NOTES] };
  assert.deepEqual(await owned("notes/x", { taskId: "own", more: "1" }, all), {
    server: "tasks",
    params: { taskId: "there", more: "1" },
  });
  assert.deepEqual(await owned("notes/x", { uri: "a:b" }, all), {
    server: "files",
    params: { uri: "b" },
  });
  assert.deepEqual(await owned("notes/x", { uri: "c:d", taskId: "other" }, all), {
    server: "notes",
    params: { uri: "c:d", taskId: "other" },
  });
});

Deno.test("a request belongs to the only server with its extension, else with any unknown one", async () => {
  const all = { notes: [NOTES], drawings: [DRAWINGS], ui: ["io.modelcontextprotocol/ui"] };
  assert.deepEqual(await owned("drawings/list", {}, all), { server: "drawings", params: {} });
  const { drawings: _, ...others } = all;
  assert.deepEqual(await owned("drawings/list", {}, others), { server: "notes", params: {} });
});

Deno.test("a request that may belong to several servers, or to none, is refused with their names", async () => {
  const two = { one: [DRAWINGS], other: ["org.example/drawings"], notes: [NOTES] };
  const [code, message] = await owned("drawings/list", {}, two) as [number, string];
  assert.equal(code, -32601);
  assert.match(message, /: one, other$/);
  const ui = { ui: ["io.modelcontextprotocol/ui"] };
  const [none, why] = await owned("drawings/list", {}, ui) as [number, string];
  assert.equal(none, -32601);
  assert.match(why, /no server/);
});
