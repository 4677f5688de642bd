/**
 * Headers and tokens that a client sends to the HTTP endpoint: none of them is forwarded to a
 * server.
 *
 * @module
 */

import assert from "node:assert/strict";
import { Scripted } from "../../src/servers/http/_stage_test.ts";
import { DoorClient } from "../kit/door_client.ts";
import { FakeCloud } from "../kit/fake_cloud.ts";
import { ERAS } from "../kit/json_rpc.ts";
import { servePml } from "../kit/pml_serve.ts";
import { assertNoLeak } from "../kit/sinks.ts";
import { SseServer } from "../kit/sse_server.ts";
import { evil } from "./evil_servers.ts";
import { textOf } from "./oracles.ts";
import { makeAttackWorkspace } from "./stage.ts";

/** Headers of a client that are for PML alone. */
const OWN = {
  "cookie": "session=canary-of-the-cookie",
  "x-api-key": "canary-of-the-key",
  "proxy-authorization": "Basic canary-of-the-proxy",
  "mcp-param-secret": "canary-of-the-parameter",
};
const CANARIES = Object.values(OWN).map((one) => /canary[\w-]+/.exec(one)?.[0] ?? "");

for (const era of ERAS) {
  Deno.test(`the token and the headers of a client go to no server, and into no file, on ${era} (SX11)`, async () => {
    await using far = new Scripted();
    await using stream = new SseServer();
    await using hub = new FakeCloud();
    await using ws = await makeAttackWorkspace({
      pml: {
        version: 1,
        permissions: { allow: ["far:*", "stream:*", "near:*", "tavily:*"] },
        cloud: { url: hub.url },
        mcpServers: {
          far: { type: "http", url: far.url },
          stream: { type: "sse", url: stream.url },
          near: evil("near"),
        },
      },
    });
    const env = { PML_API_KEY: "key-of-the-account", PML_LOG_LEVEL: "debug" };
    await using served = await servePml({ ...ws, env: { ...ws.env, ...env } });
    await using client = await DoorClient.open(served, { era, headers: OWN });
    const call = async (tool: string) => {
      const response = await client.request("tools/call", {
        name: "call",
        arguments: { tool, arguments: {} },
      });
      assert.equal(response.result?.isError, undefined, JSON.stringify(response));
      return textOf(response);
    };
    assert.equal(await call("far:t"), "done");
    await call("stream:t");
    await call("tavily:search");
    const given = await call("near:env");
    await client.request("resources/list");
    const session = client.session["mcp-session-id"] ?? "no session";
    const sent = (came: readonly { readonly headers: Headers }[]) =>
      JSON.stringify(came.map(({ headers, ...rest }) => [[...headers], rest]));
    const reached = {
      http: sent(far.came),
      sse: sent(stream.came.map(({ headers, path, message }) => ({ headers, path, message }))),
      cloud: hub.text + JSON.stringify(hub.received),
      stdio: given,
      stderr: served.stderr,
    };
    assert.ok(far.came.length > 1 && stream.came.length > 1 && hub.calls.length === 1);
    for (const { headers } of [...far.came, ...stream.came]) {
      assert.equal(headers.get("authorization"), null);
    }
    assert.equal(hub.calls[0]?.headers.authorization, "Bearer key-of-the-account");
    const files: Record<string, string> = {};
    for (const name of ["journal", "logs", "cache"]) {
      for (const path of await filesIn(`${ws.home}/${name}`)) {
        files[path] = await Deno.readTextFile(path);
      }
    }
    assert.ok(Object.keys(files).length > 0, "there is a journal");
    for (const secret of [served.token, session, ...CANARIES]) {
      assertNoLeak(secret, { ...reached, ...files });
    }
  });
}

async function filesIn(folder: string): Promise<readonly string[]> {
  const names: string[] = [];
  try {
    for await (const { name, isFile } of Deno.readDir(folder)) {
      names.push(...isFile ? [`${folder}/${name}`] : await filesIn(`${folder}/${name}`));
    }
  } catch {
    // the folder does not exist
  }
  return names;
}
