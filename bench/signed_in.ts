/**
 * Measures a small call of a server with sign-in, relative to the SDK's client with the same token;
 * and calls of another server during a sign-in.
 *
 * @module
 */

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AuthorizationServer } from "../tests/kit/authorization_server.ts";
import { browse } from "../tests/kit/browser.ts";
import { FullHttp } from "../tests/kit/full_http.ts";
import { ProtectedHttp } from "../tests/kit/protected_http.ts";
import { RawStdio } from "../tests/kit/raw_stdio.ts";
import { signIn } from "../tests/kit/sign_in.ts";
import { Stage } from "../src/servers/http/_stage_test.ts";
import { Person, serverOf } from "../tests/oauth_scene.ts";
import { makeWorkspace, type Workspace } from "../tests/kit/workspace.ts";
import { median, type Row } from "./measure.ts";

const RUNS = 300;
const WARM_UP = 30;
const SIGN_INS = 10;

type Work = () => Promise<unknown>;

/** Measures calls of servers with sign-in, and of another server during a sign-in. */
export async function benchSignedIn(): Promise<readonly Row[]> {
  return [...await callRows(), await othersRow()];
}

async function callRows(): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const kind of ["legacy", "modern"] as const) {
    await using server = new AuthorizationServer();
    await using mcp = new ProtectedHttp(kind, { server });
    await using open = new FullHttp(kind);
    await using ws = await workspaceOf({ far: mcp.url, open: open.url });
    await using pml = await startPml(ws);
    const { code, stderr } = await signIn(ws, "far");
    if (code !== 0) throw new Error(stderr);
    const token = server.tokens.secrets.find((secret) => secret.startsWith("access-")) ?? "";
    const client = new Client({ name: "bench", version: "1" }, {
      versionNegotiation: { mode: kind === "legacy" ? "legacy" : { pin: "2026-07-28" } },
    });
    const authProvider = { token: () => Promise.resolve(token) };
    await client.connect(new StreamableHTTPClientTransport(new URL(mcp.url), { authProvider }));
    // A connection of PML in this process, for comparison with the SDK's client.
    using person = new Person(ws.home);
    const far = serverOf("far", mcp.url);
    const authorization = () => Promise.resolve(person.signIns.of(far));
    await using stage = await Stage.at(mcp.url, { authorization });
    const times = await measureInTurn([
      () => callTool(pml, "far:meta"),
      () => callTool(pml, "open:meta"),
      () => stage.call("meta"),
      () => client.callTool({ name: "meta", arguments: {} }),
    ]);
    await client.close();
    const [signedInMs = NaN, openMs = NaN, pmlClientMs = NaN, sdkClientMs = NaN] = times.map(
      median,
    );
    const row = (what: string, value: number, baseline: number): Row => ({
      what: `${what}, ${kind}`,
      ...{ value, baseline, unit: "ms", runs: RUNS },
      wanted: { of: "ratio", most: 1.5 },
    });
    rows.push(
      row(
        "call of a signed-in server without checks and stdio, relative to the SDK's client",
        pmlClientMs,
        sdkClientMs,
      ),
      row(
        "call of a signed-in server through pml stdio, relative to a server without sign-in",
        signedInMs,
        openMs,
      ),
    );
  }
  return rows;
}

/** Times calls of a server while the same PML signs in to other servers. */
async function othersRow(): Promise<Row> {
  await using server = new AuthorizationServer();
  await using stack = new AsyncDisposableStack();
  const all = Array.from(
    { length: SIGN_INS },
    (_, at) => [`far${at}`, stack.use(new ProtectedHttp("modern", { server })).url],
  );
  await using open = new FullHttp("modern");
  await using ws = await workspaceOf({ ...Object.fromEntries(all), open: open.url });
  await using pml = await startPml(ws);
  for (let run = 0; run < WARM_UP; run++) await callTool(pml, "open:meta");
  const idle: number[] = [];
  const busy: number[] = [];
  for (let round = 0; round < SIGN_INS; round++) {
    for (let run = 0; run < WARM_UP; run++) {
      idle.push(await measureTime(() => callTool(pml, "open:meta")));
    }
    let isSignedIn = false;
    const signing = callTool(pml, `far${round}:meta`).finally(() => isSignedIn = true);
    while (!isSignedIn) busy.push(await measureTime(() => callTool(pml, "open:meta")));
    await signing;
  }
  const [value, baseline] = [median(busy), median(idle)];
  return {
    what: "call of a server during a sign-in to another server, over a call without a sign-in",
    ...{ value, baseline },
    unit: "ms",
    wanted: { of: "difference", most: 5 },
    runs: busy.length,
  };
}

async function workspaceOf(urls: Readonly<Record<string, string>>): Promise<Workspace> {
  const servers = Object.entries(urls).map(([name, url]) => [name, { type: "http", url }]);
  const allow = Object.keys(urls).map((name) => `${name}:*`);
  return await makeWorkspace({
    pml: { version: 1, permissions: { allow }, mcpServers: Object.fromEntries(servers) },
    env: { PML_LOG_LEVEL: "error" },
  });
}

async function startPml(ws: Workspace): Promise<RawStdio> {
  const pml = new RawStdio(ws, {
    capabilities: { elicitation: { form: {}, url: {} } },
    answer: (_, { url }) => {
      void browse(String(url));
      return { action: "accept" };
    },
  });
  await pml.open();
  return pml;
}

async function callTool(pml: RawStdio, tool: string): Promise<void> {
  const { result, error } = await pml.callTool("call", { tool, arguments: {} });
  const isError = result?.isError as unknown;
  if (error !== undefined || isError === true) throw new Error(JSON.stringify(result ?? error));
}

/** Times several kinds of work in turn, so that other load affects all alike. */
async function measureInTurn(all: readonly Work[]): Promise<readonly (readonly number[])[]> {
  const times = all.map((): number[] => []);
  for (let run = 0; run < WARM_UP + RUNS; run++) {
    for (const [at, work] of all.entries()) {
      const ms = await measureTime(work);
      if (run >= WARM_UP) times[at]?.push(ms);
    }
  }
  return times;
}

async function measureTime(work: Work): Promise<number> {
  const since = performance.now();
  await work();
  return performance.now() - since;
}

if (import.meta.main) console.log(JSON.stringify(await benchSignedIn(), null, 2));
