/**
 * Measures a small call of an HTTP server through `pml stdio`, relative to the SDK's client connected
 * directly, and the same call through a relay that only posts messages.
 *
 * @module
 */

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { FullHttp } from "../tests/kit/full_http.ts";
import { median, pathOf, type Row, StdioProcess } from "./measure.ts";

const RUNS = 300;
const WARM_UP = 30;

/** Measures calls of a server of each revision, directly, through PML and through a relay. */
export async function benchHttp(): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const kind of ["legacy", "modern"] as const) {
    await using server = new FullHttp(kind);
    // The server is in this process, so it must be warm before the first measurement.
    await measureDirect(server.url, kind);
    const rest = { baseline: await measureDirect(server.url, kind), unit: "ms", runs: RUNS };
    rows.push({
      what: `call of a server over HTTP, ${kind}, warm, relative to the SDK's client`,
      value: await throughPml(server.url),
      wanted: { of: "ratio", most: 1.5 },
      ...rest,
    }, {
      what: `the same by a relay that only posts, ${kind}, relative to the SDK's client`,
      value: await throughRelay(server.url, kind),
      ...rest,
    });
  }
  return rows;
}

async function throughPml(url: string): Promise<number> {
  const folder = await Deno.makeTempDir({ prefix: "pml-bench-" });
  await Deno.mkdir(`${folder}/ws`);
  const config = {
    version: 1,
    permissions: { allow: ["far:*"] },
    mcpServers: { far: { type: "http", url } },
  };
  await Deno.writeTextFile(`${folder}/ws/.pml.json`, JSON.stringify(config));
  const options = { args: ["stdio"], cwd: `${folder}/ws`, home: `${folder}/home` };
  const call = { name: "call", arguments: { tool: "far:meta", arguments: {} } };
  let time: number;
  {
    await using pml = new StdioProcess(pathOf("mod.ts"), options);
    await pml.initialize();
    let id = 0;
    const result = JSON.stringify(await pml.request(++id, "tools/call", call));
    if (result.includes('"isError":true')) throw new Error(result);
    time = await medianTime(() => pml.request(++id, "tools/call", call));
  }
  await Deno.remove(folder, { recursive: true });
  return time;
}

async function throughRelay(url: string, kind: "legacy" | "modern"): Promise<number> {
  const folder = await Deno.makeTempDir({ prefix: "pml-bench-" });
  let time: number;
  {
    const options = { args: [url, kind], cwd: folder, home: folder };
    await using relay = new StdioProcess(pathOf("bench/floor/http_relay.ts"), options);
    await relay.initialize();
    let id = 0;
    const call = { name: "meta", arguments: {} };
    const result = JSON.stringify(await relay.request(++id, "tools/call", call));
    if (!result.includes('"content"')) throw new Error(result);
    time = await medianTime(() => relay.request(++id, "tools/call", call));
  }
  await Deno.remove(folder, { recursive: true });
  return time;
}

async function measureDirect(url: string, kind: "legacy" | "modern"): Promise<number> {
  const mode = kind === "legacy" ? "legacy" : { pin: "2026-07-28" };
  const client = new Client({ name: "bench", version: "1" }, {
    versionNegotiation: { mode },
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const time = await medianTime(() => client.callTool({ name: "meta", arguments: {} }));
  await client.close();
  return time;
}

async function medianTime(call: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < WARM_UP + RUNS; run++) {
    const since = performance.now();
    await call();
    if (run >= WARM_UP) times.push(performance.now() - since);
  }
  return median(times);
}

if (import.meta.main) console.log(JSON.stringify(await benchHttp(), null, 2));
