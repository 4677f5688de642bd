/**
 * Measures a small call of a signed-in server, relative to the SDK's client with the same token; and
 * calls of other servers during a sign-in.
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

/** Calls a signed-in server of each era, and others during a sign-in. */
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
    await using pml = await started(ws);
    const { code, stderr } = await signIn(ws, "far");
    if (code !== 0) throw new Error(stderr);
    const token = server.tokens.secrets.find((one) => one.startsWith("access-")) ?? "";
    const client = new Client({ name: "bench", version: "1" }, {
      versionNegotiation: { mode: kind === "legacy" ? "legacy" : { pin: "2026-07-28" } },
    });
    const authProvider = { token: () => Promise.resolve(token) };
    await client.connect(new StreamableHTTPClientTransport(new URL(mcp.url), { authProvider }));
    // PML's own connection in this process, as the SDK's client is.
    using person = new Person(ws.home);
    const far = serverOf("far", mcp.url);
    const authorization = () => Promise.resolve(person.signIns.of(far));
    await using stage = await Stage.at(mcp.url, { authorization });
    const times = await inTurn([
      () => called(pml, "far:meta"),
      () => called(pml, "open:meta"),
      () => stage.call("meta"),
      () => client.callTool({ name: "meta", arguments: {} }),
    ]);
    await client.close();
    const [signed = NaN, plain = NaN, own = NaN, direct = NaN] = times.map(median);
    const row = (what: string, value: number, baseline: number): Row => ({
      what: `${what}, ${kind}`,
      ...{ value, baseline, unit: "ms", runs: RUNS },
      wanted: { of: "ratio", most: 1.5 },
    });
    rows.push(
      row("call of a signed-in server, without gates and pipe; by the SDK's client", own, direct),
      row("call of a signed-in server through pml stdio; of one without sign-in", signed, plain),
    );
  }
  return rows;
}

/** Times calls of a server while the same PML signs in at others, from the refusal to the end. */
async function othersRow(): Promise<Row> {
  await using server = new AuthorizationServer();
  await using stack = new AsyncDisposableStack();
  const all = Array.from(
    { length: SIGN_INS },
    (_, at) => [`far${at}`, stack.use(new ProtectedHttp("modern", { server })).url],
  );
  await using open = new FullHttp("modern");
  await using ws = await workspaceOf({ ...Object.fromEntries(all), open: open.url });
  await using pml = await started(ws);
  for (let run = 0; run < WARM_UP; run++) await called(pml, "open:meta");
  const idle: number[] = [];
  const busy: number[] = [];
  for (let round = 0; round < SIGN_INS; round++) {
    for (let run = 0; run < WARM_UP; run++) idle.push(await timed(() => called(pml, "open:meta")));
    let isOver = false;
    const signing = called(pml, `far${round}:meta`).finally(() => isOver = true);
    while (!isOver) busy.push(await timed(() => called(pml, "open:meta")));
    await signing;
  }
  const [value, baseline] = [median(busy), median(idle)];
  return {
    what: "call of a server during a sign-in at another; without a sign-in",
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

async function started(ws: Workspace): Promise<RawStdio> {
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

async function called(pml: RawStdio, tool: string): Promise<void> {
  const { result, error } = await pml.callTool("call", { tool, arguments: {} });
  const isError = result?.isError as unknown;
  if (error !== undefined || isError === true) throw new Error(JSON.stringify(result ?? error));
}

/** Times kinds of work in turn, so that a slow moment is one of all. */
async function inTurn(all: readonly Work[]): Promise<readonly (readonly number[])[]> {
  const times = all.map((): number[] => []);
  for (let run = 0; run < WARM_UP + RUNS; run++) {
    for (const [at, work] of all.entries()) {
      const ms = await timed(work);
      if (run >= WARM_UP) times[at]?.push(ms);
    }
  }
  return times;
}

async function timed(work: Work): Promise<number> {
  const since = performance.now();
  await work();
  return performance.now() - since;
}

if (import.meta.main) console.log(JSON.stringify(await benchSignedIn(), null, 2));
