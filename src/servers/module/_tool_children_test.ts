import assert from "node:assert/strict";
import { join } from "node:path";
import { NO_PERMISSIONS, type Permissions } from "../../protocol/tool.ts";
import type { Module, ModuleUse } from "./loader.ts";
import { ToolChildren } from "./_tool_children.ts";
import type { ModuleHost } from "./module_host.ts";

const PROTECTION = { writeProtected: [], readProtected: [], writable: [], paths: [] };
const LIMITS = {
  ...{ heapMb: 1, rssMb: 1, frameBytes: 1, frames: 1, resultBytes: 1, writeBytes: 1 },
  ...{ startMs: 1, idleMs: 1, idleChildren: 1, moduleBytes: 1, children: 1 },
};

/** A machine whose values a test replaces. */
class FakeHost implements ModuleHost {
  readonly home = "/home";
  readonly programEnvironment = {};
  readonly groups = { mark: "", add() {}, remove() {} };
  protection: ModuleHost["protection"] = PROTECTION;
  limits = LIMITS;
  osLayer: ModuleHost["osLayer"] = "auto";
  value = "1";

  constructor(public workspace: string) {}

  variable(): string {
    return this.value;
  }

  logModule(): void {}
}

function moduleOf(permissions: Partial<Permissions>): Module {
  const definition = { name: "tool", inputSchema: {} };
  const asked = { ...NO_PERMISSIONS, ...permissions };
  return {
    ...{ name: "mine", integrity: "sha256-x", code: new Uint8Array(), definitions: [definition] },
    meta: {
      name: "mine",
      tools: [{ definition, permissions: asked }],
    } as unknown as Module["meta"],
  };
}

function useOf(grants?: ModuleUse["grants"]): ModuleUse {
  return {
    source: { kind: "file", name: "mine", path: "/mine.ts" },
    expectedHash: "sha256-x",
    grants,
  };
}

Deno.test("calls of a tool share one options object until something changes", () => {
  const workspace = Deno.realPathSync(Deno.makeTempDirSync());
  const now = new FakeHost(workspace);
  const children = new ToolChildren(now);
  const called = { module: moduleOf({ read: [".", "docs"], net: ["example.com"] }), tool: "tool" };
  let use = useOf();
  const child = () => children.of(use, called);
  let last = child();
  assert.equal(child(), last);
  const changes: Readonly<Record<string, () => void>> = {
    grants: () => use = useOf({ net: ["example.com"] }),
    "a link": () => Deno.symlinkSync("/", join(workspace, "docs")),
    workspace: () => now.workspace = Deno.realPathSync(Deno.makeTempDirSync()),
    limits: () => now.limits = { ...LIMITS, heapMb: 2 },
    protection: () => now.protection = { ...PROTECTION, paths: ["/secret"] },
    "the layer": () => now.osLayer = "off",
  };
  for (const [name, change] of Object.entries(changes)) {
    change();
    const next = child();
    assert.notEqual(next.key, last.key, name);
    assert.equal(child(), next, name);
    last = next;
  }
  for (const each of [workspace, now.workspace]) Deno.removeSync(each, { recursive: true });
});

Deno.test("the child of a tool that reads variables has their values of now", () => {
  const now = new FakeHost("/workspace");
  const children = new ToolChildren(now);
  const called = { module: moduleOf({ env: ["ONE"] }), tool: "tool" };
  const child = () => children.of(useOf({ env: ["ONE"] }), called);
  assert.deepEqual(child().options.env, { ONE: "1" });
  now.value = "2";
  assert.deepEqual(child().options.env, { ONE: "2" });
});

Deno.test("a draft has no access, even if its module has grants in the file", () => {
  const children = new ToolChildren(new FakeHost("/workspace"));
  const module = moduleOf({ read: ["."], net: ["*"] });
  const called = { module, tool: "tool" };
  const { source, ...use } = useOf({ net: ["example.com"] });
  assert.deepEqual(children.of({ source, ...use }, called).options.net, ["example.com:443"]);
  const draft = { ...source, draft: module } as ModuleUse["source"];
  assert.deepEqual(children.of({ source: draft, ...use }, called).options.net, []);
});
