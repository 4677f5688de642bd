/**
 * Measures requests to a hub with 10,000 entries, on each store, and to a bare server that answers
 * with the same bytes from memory, for comparison. Run `deno run -A hub/bench/reads.ts`.
 *
 * @module
 */

import { Agent, createServer, get } from "node:http";
import { moduleOffer, put } from "../../tests/kit/hub.ts";
import { startPostgres } from "../../tests/kit/postgres.ts";
import { openEmbedded } from "../src/store/embedded.ts";
import { openPostgres } from "../src/store/postgres.ts";
import type { HubStore } from "../src/store/store.ts";
import { newKey } from "../src/write/key.ts";

const ENTRIES = Number(Deno.env.get("ENTRIES") ?? 10_000);
const BATCH = 1_000;
const READS = 2_000;
const SEARCHES = 200;
const PUBLICATIONS = 300;
const WORDS = "git file query search weather mail issue image chart invoice table page".split(" ");
const ENTRY = /^[a-z]+-\d+$/;

const nameOf = (at: number) => `${WORDS[at % WORDS.length]}-${at}`;

/** A store to measure, and the arguments and variables with which a hub uses it. */
interface MeasuredStore {
  readonly open: () => Promise<HubStore>;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

async function fill(store: HubStore): Promise<void> {
  for (let from = 0; from < ENTRIES; from += BATCH) {
    await store.add(Array.from({ length: BATCH }, (_, at) => {
      const fqdn = nameOf(from + at);
      if (!ENTRY.test(fqdn)) throw new Error(fqdn);
      const words = [at * 7 + 3, at * 13 + 5].map((n) => WORDS[n % WORDS.length] ?? "");
      const tools = words.map((word) => ({
        name: `${word}_list`,
        inputSchema: { type: "object" },
      }));
      const description = `Does ${words.join(" and ")} for team ${(from + at) % 997}`;
      const manifest = { fqdn, type: "http", version: "1.0.0", description };
      const rest = { url: "https://x.example/mcp", tools, env_required: [], routing: "local" };
      return { fqdn, version: "1.0.0", manifest: { ...manifest, ...rest } };
    }));
  }
}

/** Starts a server to measure, in its own process. */
async function spawnServer(args: readonly string[], env: MeasuredStore["env"] = {}) {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", ...args],
    env,
    stdout: "piped",
  });
  const child = command.spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await reader.read();
  return {
    port: Number(/127\.0\.0\.1:(\d+)/.exec(value)?.[1]),
    memory: async () => {
      const status = await Deno.readTextFile(`/proc/${child.pid}/status`);
      return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024);
    },
    stop: async () => {
      child.kill("SIGTERM");
      await child.status;
      await reader.cancel();
    },
  };
}

async function measureReads(
  times: number,
  { port, path }: { readonly port: number; readonly path: (at: number) => string },
): Promise<readonly number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const durations: number[] = [];
  for (let at = -200; at < times; at++) {
    const start = performance.now();
    const options = { host: "127.0.0.1", port, path: path(at < 0 ? times - at : at), agent };
    await new Promise<void>((done, failed) => {
      get(options, (answer) => void answer.resume().on("end", () => done())).on("error", failed);
    });
    if (at >= 0) durations.push(performance.now() - start);
  }
  agent.destroy();
  return durations.sort((a, b) => a - b);
}

function printPercentiles(name: string, durations: readonly number[]): void {
  const part = (share: number) =>
    `${(durations[Math.floor(durations.length * share)] ?? 0).toFixed(3)} ms`;
  console.log(`${name}: p50 ${part(0.5)}, p95 ${part(0.95)}, p99 ${part(0.99)}`);
}

/** Serves the headers and the body in `answer` (JSON) from memory. */
function serveBareAnswer(answer: string): void {
  const { headers, body } = JSON.parse(answer);
  const bytes = new TextEncoder().encode(body);
  const server = createServer((_, response) => response.writeHead(200, headers).end(bytes));
  server.listen(0, "127.0.0.1", () => {
    console.log(`127.0.0.1:${(server.address() as { port: number }).port}`);
  });
  Deno.addSignalListener("SIGTERM", () => Deno.exit(0));
}

/** Returns a hub's answer for one entry, as JSON, without the headers `date` and `connection`. */
async function answerOf(port: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/mcp/${nameOf(1)}`);
  const own = ["date", "connection", "keep-alive"];
  const headers = [...answer.headers].filter(([name]) => !own.includes(name));
  return JSON.stringify({ headers: Object.fromEntries(headers), body: await answer.text() });
}

/** Publishes one module after the other. Returns the sorted durations in milliseconds. */
async function measurePublications(port: number, key: string): Promise<readonly number[]> {
  const durations: number[] = [];
  const url = `http://127.0.0.1:${port}/mcp`;
  const offers = Array.from({ length: PUBLICATIONS }, (_, at) => {
    const text = String(at).padEnd(3_000, "x");
    return moduleOffer(`bench.n${at}`, "1.0.0", text);
  });
  for (const offer of offers) {
    const start = performance.now();
    const { status, body } = await put(url, key, offer);
    durations.push(performance.now() - start);
    if (status !== 201) throw new Error(JSON.stringify(body));
  }
  return durations.sort((a, b) => a - b);
}

async function measureStore(name: string, { open, args, env }: MeasuredStore): Promise<void> {
  console.log(`\n${name}`);
  const { id, key, hash } = newKey("publisher");
  {
    await using store = await open();
    await fill(store);
    await store.admin.addKey({ id, owner: "bench", hash, kind: "publisher" });
  }
  const mod = decodeURIComponent(new URL("../mod.ts", import.meta.url).pathname);
  const serve = [mod, "serve", "--port", "0", "--json", "--rate", "999999"];
  const hub = await spawnServer([...serve, ...args], env);
  console.log(`memory at the start: ${await hub.memory()} MB`);
  const bareServer = await spawnServer([import.meta.filename ?? "", await answerOf(hub.port)]);
  const path = (at: number) => `/mcp/${nameOf(at * 37 % ENTRIES)}`;
  for (const _ of [1, 2, 3]) {
    printPercentiles("bare", await measureReads(READS, { port: bareServer.port, path }));
    printPercentiles("by name", await measureReads(READS, { port: hub.port, path }));
  }
  const search = (at: number) => `/mcp?q=${WORDS[at % WORDS.length]}+${at % 997}&include=tools`;
  printPercentiles("search", await measureReads(SEARCHES, { port: hub.port, path: search }));
  const commonWord = (at: number) => `/mcp?q=${WORDS[at % WORDS.length]}&include=tools`;
  printPercentiles(
    "search, many hits",
    await measureReads(SEARCHES, { port: hub.port, path: commonWord }),
  );
  const page = (at: number) => `/mcp?limit=100&cursor=${nameOf(at)}`;
  printPercentiles("page of 100", await measureReads(SEARCHES, { port: hub.port, path: page }));
  printPercentiles("publish", await measurePublications(hub.port, key));
  console.log(`memory at the end: ${await hub.memory()} MB`);
  await hub.stop();
  await bareServer.stop();
}

async function main(): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    const open = () => openEmbedded(folder);
    await measureStore("file of SQLite", { open, args: ["--data", folder], env: {} });
    const { size } = await Deno.stat(`${folder}/hub.db`);
    console.log(`disk: ${Math.round(size / ENTRIES)} bytes an entry`);
    await using server = await startPostgres({ isSafe: true });
    const url = await server.database();
    await measureStore("PostgreSQL", {
      open: () => openPostgres(url),
      args: [],
      env: { DATABASE_URL: url },
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (Deno.args[0] !== undefined) serveBareAnswer(Deno.args[0]);
else await main();
