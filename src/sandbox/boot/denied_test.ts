import assert from "node:assert/strict";
import { DENIED } from "../denied_names.ts";
import type { HostClient } from "./host_client.ts";
import { deniedInDeno } from "./denied.ts";
import { brokeredFiles } from "./files.ts";

/** Names that a module may use unchanged, because they have no effect outside its thread. */
const HARMLESS =
  "internal test bench lint isatty cpuUsage memoryUsage version build errors inspect " +
  "SeekMode stdin stdout stderr permissions Permissions PermissionStatus upgradeWebSocket " +
  "refTimer unrefTimer consoleSize ChildProcess HttpClient telemetry pid ppid noColor args";
/**
 * Names that Deno itself refuses without a permission, or that only end the module's own thread.
 */
const CLOSED = "env mainModule exit execPath hostname networkInterfaces osRelease osUptime " +
  "loadavg systemMemoryInfo uid gid";
/** Names that the Worker replaces itself. */
const OWN = "cwd";

Deno.test("every member of Deno is brokered, refused or harmless", () => {
  const brokered = Object.keys(brokeredFiles({} as HostClient));
  const refused = Object.keys(deniedInDeno(DENIED));
  const known = new Set([brokered, refused, `${HARMLESS} ${CLOSED} ${OWN}`.split(" ")].flat());
  assert.deepEqual(Object.keys(Deno).filter((name) => !known.has(name)), []);
  assert.deepEqual(brokered.filter((name) => !(name in Deno)), []);
  assert.deepEqual(brokered.filter((name) => refused.includes(name)), []);
});

Deno.test("a refused function throws an error with the reason and an alternative", () => {
  const said: Record<string, RegExp> = {
    Command: /host\.exec/,
    spawn: /host\.exec/,
    connect: /host\.fetch/,
    serve: /network-isolated/,
    openKv: /host\.sqlite/,
    symlink: /cannot make links/,
    umask: /pass a mode/,
    watchFs: /read them again/,
    chown: /owners/,
    addSignalListener: /host\.signal/,
    UnsafePointer: /native code/,
  };
  const refused = deniedInDeno(DENIED);
  for (const [name, value] of Object.entries(refused)) {
    const why = said[name] ?? /^Cannot use Deno\./;
    const isRefusal = (error: unknown) =>
      error instanceof Deno.errors.NotCapable && "code" in error &&
      error.code === "SANDBOX_DENIED" && why.test(error.message);
    assert.ok(typeof value === "function");
    assert.throws(() => value(), isRefusal, name);
    assert.throws(() => Reflect.construct(value, []), isRefusal, name);
  }
  assert.deepEqual(Object.keys(said).filter((name) => !(name in refused)), []);
});
