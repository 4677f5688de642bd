/**
 * Measures how soon npm servers answer and how much memory they use: confined in Deno as PML starts
 * them, in Node, and with plain `npx -y`. Installs them first, so it needs an npm registry.
 *
 *     deno run -A bench/confined.ts
 *
 * @module
 */

import { join } from "node:path";
import { confinedArgs } from "../src/servers/stdio/_confined_access.ts";
import { packageCommand } from "../src/servers/stdio/_package_command.ts";
import { Installs } from "../src/servers/stdio/install/installs.ts";
import { median } from "./measure.ts";

const RUNS = 9;
const SERVERS = ["memory", "everything", "filesystem", "sequential-thinking"];
const MESSAGES = [
  {
    id: 1,
    method: "initialize",
    params: {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "bench", version: "1" },
    },
  },
  { method: "notifications/initialized" },
  { id: 2, method: "tools/list", params: {} },
].map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("");

interface Start {
  readonly program: string;
  readonly args: readonly string[];
}

interface Figures {
  readonly ms: number;
  readonly mb: number;
}

/** Returns the ways to start one server, in the order of the table. */
async function startsOf(name: string, folder: string): Promise<Readonly<Record<string, Start>>> {
  const [workspace, home] = [join(folder, "ws"), join(folder, "home")];
  const spec = `@modelcontextprotocol/server-${name}`;
  const serverArgs = name === "filesystem" ? [workspace] : [];
  const packageSpec = packageCommand({ name, command: "npx", args: ["-y", spec, ...serverArgs] });
  if (packageSpec === undefined) throw new Error(`${spec} is not a package`);
  const host = {
    home,
    groups: undefined,
    installerEnvironment: () => Deno.env.toObject(),
    logInstall() {},
  };
  const installs = new Installs(host, new AbortController().signal);
  const finder = { find: (program: string) => program };
  const installed = await installs.ensureInstalled(packageSpec, { finder, report: () => {} });
  const protection = { writeProtected: [".git"], readProtected: [".env*"] };
  const access = { grants: undefined, hasSystemLayer: true, certificates: [] };
  const where = { name, folder: installed.folder, home, workspace, protection, ...access };
  return {
    confined: {
      program: Deno.execPath(),
      args: [...confinedArgs(where), installed.file, ...serverArgs],
    },
    node: { program: "node", args: [installed.file, ...serverArgs] },
    npx: { program: "npx", args: ["-y", spec, ...serverArgs] },
  };
}

/** Starts a server in each way, in turn, so that other load of the machine affects all alike. */
async function figuresOf(
  ways: readonly (readonly [string, Start])[],
  folder: string,
): Promise<readonly (readonly Figures[])[]> {
  const results: readonly Figures[][] = ways.map(() => []);
  for (let run = 0; run <= RUNS; run++) {
    for (const [at, [, start]] of ways.entries()) {
      const figures = await measure(start, folder);
      // The first start in each way fills caches.
      if (run > 0) results[at]?.push(figures);
    }
  }
  return results;
}

/** Starts a server and waits for the answers to the handshake and to the first list. */
async function measure({ program, args }: Start, folder: string): Promise<Figures> {
  const since = performance.now();
  const child = new Deno.Command(program, {
    args: [...args],
    cwd: join(folder, "ws"),
    env: { DENO_DIR: join(folder, "deno"), DENO_NO_UPDATE_CHECK: "1" },
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
    detached: true,
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(MESSAGES));
  let ms = 0;
  let text = "";
  for await (const chunk of child.stdout.values({ preventCancel: true })) {
    text += new TextDecoder().decode(chunk);
    // A large list arrives in pieces; it is complete when a piece ends with a line break.
    if (ms === 0 && /"id":1[,}]/.test(text)) ms = performance.now() - since;
    if (/"id":2[,}]/.test(text) && text.endsWith("\n")) break;
  }
  const mb = residentMb(child.pid);
  Deno.kill(-child.pid, "SIGKILL");
  await child.status;
  await child.stdout.cancel();
  await writer.close().catch(() => {}); // the process has ended
  return { ms, mb };
}

/** Returns the memory of a process and its children, with their proportional share of shared pages. */
function residentMb(pid: number): number {
  const pssMb = (id: number) =>
    Number(/^Pss:\s+(\d+)/m.exec(Deno.readTextFileSync(`/proc/${id}/smaps_rollup`))?.[1]) / 1024;
  const tasks = [...Deno.readDirSync(`/proc/${pid}/task`)];
  const children = tasks.flatMap(({ name }) =>
    Deno.readTextFileSync(`/proc/${pid}/task/${name}/children`).split(" ").filter((id) =>
      id.trim() !== ""
    )
  );
  return children.reduce((sum, id) => sum + residentMb(Number(id)), pssMb(pid));
}

if (import.meta.main) {
  const folder = await Deno.makeTempDir({ prefix: "pml-bench-" });
  await Deno.mkdir(join(folder, "ws"));
  console.log("| server | start: confined | node | npx -y | memory: confined | node | npx -y |");
  console.log("| --- | --- | --- | --- | --- | --- | --- |");
  for (const name of SERVERS) {
    const found = await figuresOf(Object.entries(await startsOf(name, folder)), folder);
    const row = (figureOf: (figures: Figures) => number, unit: string) =>
      found.map((all) => `${median(all.map(figureOf)).toFixed(0)} ${unit}`);
    console.log(
      `| ${[name, ...row(({ ms }) => ms, "ms"), ...row(({ mb }) => mb, "MB")].join(" | ")} |`,
    );
  }
  await Deno.remove(folder, { recursive: true });
}
