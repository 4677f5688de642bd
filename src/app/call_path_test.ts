import assert from "node:assert/strict";
import { join } from "node:path";
import { Log } from "../audit/log.ts";
import { Metrics } from "../audit/metrics.ts";
import { Redactor } from "../audit/redact.ts";
import { environmentOf } from "../config/env.ts";
import { Keys } from "../config/keys.ts";
import type { Call } from "../core/call.ts";
import { toolId } from "../core/tool_id.ts";
import { Schemas } from "../gateway/schemas.ts";
import { Servers } from "../gateway/servers.ts";
import { ModuleFiles } from "../modules/module_files.ts";
import { Pins } from "../policy/pins.ts";
import { Policy } from "../policy/policy.ts";
import { integrityOf } from "../registry/integrity.ts";
import { Catalog } from "../search/catalog.ts";
import { Door } from "./call_path.ts";

const MODULE = `export const __meta__ = { name: "late", tools: { run: {} } };
export const run = () => "ran";`;
const RULES = {
  version: 1,
  permissions: { allow: ["late:*"] },
  private_mcps: { late: { type: "deno", path: "late.js" } },
};

interface Stage extends AsyncDisposable {
  readonly door: Door;
  readonly call: Call;
}

const NOBODY = { warn: () => {}, register: () => {} };

/** Opens a door on a module; `seen` is what the gate that asks sees of it, `files` what runs. */
async function openDoor(
  seen: (path: string) => string | undefined,
  files: (path: string) => ModuleFiles,
): Promise<Stage> {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const ws = join(root, "ws");
  await Deno.mkdir(ws);
  await Deno.writeTextFile(join(ws, ".pml.json"), JSON.stringify(RULES));
  await Deno.writeTextFile(join(ws, "late.js"), MODULE);
  const variables = { HOME: root, PML_HOME: join(root, "home"), PML_WORKSPACE: ws, PML_TRUST: ws };
  const policy = await Policy.open(environmentOf({ ...variables, PML_REGISTRIES: "none" }), {
    cwd: ws,
    builtins: new Set(),
    integrityOf: () => seen(join(ws, "late.js")),
    warn: () => {},
  });
  const redactor = new Redactor();
  const servers = new Servers({ catalog: new Catalog(), waitMs: 1_000, onChange: () => {} });
  const door = new Door({
    between: {
      told: { changed: () => {}, updated: () => {}, logged: () => {}, elicited: () => {} },
      capabilities: () => ({}),
      level: () => undefined,
    },
    ...{ policy, metrics: new Metrics() },
    pins: new Pins({ ...NOBODY, home: join(root, "home"), folder: () => ws }),
    adopted: () => Promise.reject(new Error("no registry is asked")),
    servers,
    schemas: new Schemas(),
    files: files(join(ws, "late.js")),
    builtins: new Map(),
    manifest: () => undefined,
    keys: new Keys({
      ...NOBODY,
      environment: () => policy.now.loaded.environment,
      trusted: () => undefined,
    }),
    log: new Log({ redactor, level: "error" }),
    redactor,
  });
  const load = () => door.machine.listOf("late", "tools");
  const blocked = () => undefined;
  servers.replace([{ name: "late", origin: "private", kind: "deno", blocked, load }]);
  const call = {
    id: toolId("late", "run"),
    arguments: {},
    via: "call",
    actor: "local",
    signal: new AbortController().signal,
    callId: "1",
  };
  return {
    door,
    call,
    [Symbol.asyncDispose]: async () => {
      await door[Symbol.asyncDispose]();
      await Deno.remove(root, { recursive: true });
    },
  };
}

Deno.test("callTool() runs no module whose file came after its trust was looked at", async () => {
  // The gate that asks saw no file yet, so nothing was approved.
  await using at = await openDoor(() => undefined, () => new ModuleFiles());
  await assert.rejects(at.door.callTool(at.call), { code: "INTEGRITY_MISMATCH" });
});

Deno.test("callTool() runs the bytes that were compared, however often the file changes", async () => {
  const good = integrityOf(new TextEncoder().encode(MODULE));
  for (let honest = 0; honest < 12; honest++) {
    let looks = 0;
    const flipping = new ModuleFiles();
    const identify = flipping.identify.bind(flipping);
    // Another process puts its own code there after so many looks.
    flipping.identify = (source, maxBytes) => {
      if (looks++ < honest) return identify(source, maxBytes);
      const code = new TextEncoder().encode(MODULE.replace('"ran"', '"other"'));
      return { code, integrity: integrityOf(code) };
    };
    await using at = await openDoor(() => good, () => flipping);
    const outcome = await at.door.callTool(at.call).catch((error) => error);
    const text = outcome.kind === "result" ? outcome.result.content[0].text : outcome.code;
    assert.ok(text === "ran" || text === "INTEGRITY_MISMATCH", `${honest} looks: ${text}`);
  }
});
