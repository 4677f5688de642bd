import assert from "node:assert/strict";
import { osChecks } from "./_os_checks.ts";

Deno.test("osChecks() reports the protection by a layer, and the missing one without it", async () => {
  const [held, programs, reaper] = await osChecks("landlock 7");
  assert.match(held?.message ?? "", /^landlock 7: the system blocks links /);
  const bound = Deno.build.os === "linux" && Deno.uid() !== 0;
  assert.match(programs?.message ?? "", bound ? /is limited$/ : /is not limited: /);
  assert.deepEqual([reaper?.name, reaper?.ok], ["reaper", true]);
  const linux = Deno.build.os === "linux";
  const wanted = linux
    ? /, .*detached ones$/
    : Deno.build.os === "windows"
    ? /: job objects of Windows$/
    : /, except detached ones/;
  assert.match(reaper?.message ?? "", wanted);
  const [bubblewrap] = await osChecks("bubblewrap 0.8.0");
  assert.match(bubblewrap?.message ?? "", /the system blocks/);
  for (const none of ["none: it is off", "no landlock: ENOSYS"]) {
    const [open] = await osChecks(none);
    assert.ok(open?.ok && open.hint !== undefined, "a layer is never a requirement");
    assert.match(open.message, /^no.* links /);
  }
});
