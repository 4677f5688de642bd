/**
 * Runs the public conformance suite against `pml serve`, with the fixture server behind it.
 *
 * @module
 */

import { makeWorkspace } from "../kit/workspace.ts";
import { servePml, type TestServer } from "../kit/pml_serve.ts";
import { until } from "../kit/wait.ts";
import { denoServer } from "../kit/pml_command.ts";
import type { Kind } from "./words.ts";
import { serveFixture } from "./fixture_http.ts";

/** The suite. Its newest version has no frozen sets of scenarios yet. */
export const SUITE = "npm:@modelcontextprotocol/conformance@0.2.0-alpha.12";

/** The revisions whose sets of scenarios are frozen. */
export const REVISIONS = ["2025-11-25", "2026-07-28"] as const;

/** The server behind PML: the fixture over a transport, or another server at a URL. */
export type Behind =
  | { readonly kind: Kind; readonly over: "stdio" }
  | { readonly kind: Kind | "both"; readonly over: "http" }
  | { readonly url: string };

/** A check of the suite. */
export interface Checked {
  readonly scenario: string;
  readonly id: string;
  readonly status: string;
  readonly why: string;
}

/** Starts the server, and returns its address. */
function serverOf(behind: Behind): AsyncDisposable & { readonly definition: object } {
  const none = () => Promise.resolve();
  if ("url" in behind) {
    const { url } = behind;
    return { definition: { type: "http", url }, [Symbol.asyncDispose]: none };
  }
  if (behind.over === "http") {
    const { url, [Symbol.asyncDispose]: end } = serveFixture(behind.kind);
    return { definition: { type: "http", url }, [Symbol.asyncDispose]: end };
  }
  const server = denoServer("tests/conformance/fixture.ts", behind.kind);
  return { definition: { type: "stdio", ...server }, [Symbol.asyncDispose]: none };
}

/** Runs the server scenarios of a revision through PML. Returns all checks. */
export async function runServerSuite(
  revision: string,
  behind: Behind,
  more: readonly string[] = ["--requirements", revision],
): Promise<readonly Checked[]> {
  await using server = serverOf(behind);
  await using ws = await makeWorkspace({
    pml: {
      version: 1,
      permissions: { allow: ["fixture:*"] },
      gateway: { tools_exposure: "full_proxy", prefix: false, meta_tools: [] },
      mcpServers: { fixture: server.definition },
    },
  });
  await using served = await servePml(ws);
  await listed(served);
  await using front = withToken(served);
  return await runSuite(front.url, `${ws.root}/results`, more);
}

/** The scenarios of skills (SEP-2640), which no set of a revision contains. */
const SKILL_SCENARIOS = [
  "sep-2640-skills-enumeration",
  "sep-2640-skills-manifest",
  "sep-2640-skills-directory",
] as const;

/** Runs the scenarios of skills through PML, with the SDK's server behind it, in either revision. */
export async function runSkillSuite(
  kind: Kind,
): Promise<readonly { readonly scenario: string; readonly checks: readonly Checked[] }[]> {
  const head = "---\nname: a\ndescription: Describes a\n---\n";
  await using ws = await makeWorkspace({
    files: { "skills/a/SKILL.md": head, "skills/a/references/b.md": "b" },
    pml: {
      version: 1,
      permissions: { allow: ["s:*"] },
      mcpServers: { s: denoServer("tests/kit/skills_server.ts", kind, "./skills") },
    },
  });
  await using served = await servePml(ws);
  await using connection = await served.connect();
  await connection.client.readResource({ uri: "skill://s/a/SKILL.md" });
  await using front = withToken(served);
  const all = [];
  for (const scenario of SKILL_SCENARIOS) {
    const folder = `${ws.root}/${scenario}`;
    all.push({ scenario, checks: await runSuite(front.url, folder, ["--scenario", scenario]) });
  }
  return all;
}

/** Runs the server scenarios of a revision against a server itself. */
export async function runDirectly(revision: string, url: string): Promise<readonly Checked[]> {
  await using ws = await makeWorkspace({});
  return await runSuite(url, `${ws.root}/results`, ["--requirements", revision]);
}

async function runSuite(
  url: string,
  folder: string,
  more: readonly string[],
): Promise<readonly Checked[]> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--quiet",
      "--no-lock",
      "--no-config",
      SUITE,
      "server",
      "--url",
      url,
      "-o",
      folder,
      ...more,
    ],
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  const checks = await checksIn(folder);
  if (checks.length === 0) {
    throw new Error(
      `The suite did not run (${success}): ${decoder.decode(stdout)} ${decoder.decode(stderr)}`,
    );
  }
  return checks;
}

/** Waits until PML has read the lists of the fixture: the suite requests each only once. */
async function listed(served: TestServer): Promise<void> {
  await using connection = await served.connect();
  const { client } = connection;
  await until(async () => (await client.listPrompts()).prompts.length > 0);
  await until(async () => (await client.listResources()).resources.length > 0);
  await until(async () => (await client.listResourceTemplates()).resourceTemplates.length > 0);
}

/** Starts a proxy that adds the token to the requests of the suite, which sends none. */
function withToken(served: { readonly url: string; readonly token: string }) {
  const { host } = new URL(served.url);
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  const server = Deno.serve(options, async (request) => {
    const headers = new Headers(request.headers);
    headers.set("authorization", `Bearer ${served.token}`);
    const to = new URL(request.url);
    to.host = host;
    return await fetch(to, {
      method: request.method,
      headers,
      body: request.body,
      signal: request.signal,
      redirect: "manual",
    });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/mcp`,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

async function checksIn(folder: string): Promise<readonly Checked[]> {
  const all: Checked[] = [];
  for await (const { name } of Deno.readDir(folder)) {
    const path = `${folder}/${name}/checks.json`;
    const text = await Deno.readTextFile(path).catch(() => "[]");
    for (const { id, status, errorMessage } of JSON.parse(text)) {
      all.push({
        scenario: name.replace(/^server-|-\d{4}-.*$/g, ""),
        id,
        status,
        why: errorMessage ?? "",
      });
    }
  }
  return all;
}

/** The fixture with each transport and revision. */
export const CELLS: readonly Exclude<Behind, { readonly url: string }>[] = [
  { kind: "legacy", over: "stdio" },
  { kind: "modern", over: "stdio" },
  { kind: "legacy", over: "http" },
  { kind: "modern", over: "http" },
  { kind: "both", over: "http" },
];
