import assert from "node:assert/strict";
import { osChecks } from "./_os_checks.ts";

Deno.test("osChecks() reports the protection of the layer, and what is open without one", async () => {
  const [held, programs, reaper] = await osChecks("landlock 7");
  assert.match(held?.said ?? "", /^landlock 7: .* is stopped by the system$/);
  const bound = Deno.build.os === "linux" && Deno.uid() !== 0;
  assert.match(programs?.said ?? "", bound ? /^bounded/ : /^not bounded by number: /);
  assert.deepEqual([reaper?.name, reaper?.ok], ["reaper", true]);
  const linux = Deno.build.os === "linux";
  const wanted = linux
    ? /, wherever that flees$/
    : Deno.build.os === "windows"
    ? /: job objects of Windows$/
    : /; not what leaves/;
  assert.match(reaper?.said ?? "", wanted);
  const [bubblewrap] = await osChecks("bubblewrap 0.8.0");
  assert.match(bubblewrap?.said ?? "", /is stopped/);
  for (const none of ["none: it is off", "no landlock: ENOSYS"]) {
    const [open] = await osChecks(none);
    assert.ok(open?.ok && open.hint !== undefined, "a layer is never a requirement");
    assert.match(open.said, /^no.* is not stopped by the system/);
  }
});
