import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { assertAllListed, ENTRY_POINTS, LOOP, makeDoorScene, NOT_OFFERED } from "./entry_points.ts";
import { endWell, journalOf, ofKind } from "./oracles.ts";

interface Judged {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The error code that the caller gets. */
  readonly code?: string;
}

const MOVED = { source: "good.txt", destination: "planted" };
/** Each decision, with a tool that it applies to. */
const JUDGED: Readonly<Record<string, Judged>> = {
  deny: { tool: "filesystem:move_file", args: MOVED, code: "PERMISSION_DENIED" },
  ask: {
    tool: "filesystem:create_directory",
    args: { path: "planted" },
    code: "APPROVAL_REQUIRED",
  },
  allow: { tool: "filesystem:write_file", args: { path: "free.txt", content: "x" } },
  unknown: { tool: "filesystem:no_such_tool", args: MOVED, code: "UNKNOWN_TOOL" },
};
const PML = {
  version: 1,
  permissions: {
    allow: ["filesystem:read_file", "filesystem:write_file"],
    deny: ["filesystem:move_file"],
  },
  gateway: { tools_exposure: "full_proxy" },
} as const;

Deno.test("each decision applies to each entry point (PM8)", async () => {
  assertAllListed();
  await using scene = await makeDoorScene({ era: "2025-11-25", pml: PML, capabilities: {} });
  const { ws, pml } = scene;
  for (const [door, use] of Object.entries(ENTRY_POINTS)) {
    for (const [judged, { tool, args, code }] of Object.entries(JUDGED)) {
      const text = await use(scene, tool, args);
      // A model gets the same text for denied and for missing tools.
      const isUnseen = door === LOOP && (judged === "deny" || judged === "unknown");
      assert.equal(text, isUnseen ? NOT_OFFERED : code, `${door}: ${judged}`);
    }
  }
  assert.deepEqual((await readdir(ws.path)).filter((name) => name.startsWith("planted")), []);
  const ends = ofKind(await journalOf(ws), "end").filter(({ outcome }) => outcome === "result");
  const ran = new Set(ends.map(({ tool = "" }) => tool));
  for (const name of ["deny", "ask", "unknown"]) assert.ok(!ran.has(JUDGED[name]?.tool ?? ""));
  await endWell(ws, pml);
});
