import assert from "node:assert/strict";
import { AccessLists, type SystemPrograms } from "./access_list.ts";

const HOME = String.raw`D:\pml`;

/** Access lists with programs that print these texts, and the commands that were run. */
function withPrograms(outputs: Readonly<Record<string, string>>) {
  const ran: string[][] = [];
  const run: SystemPrograms["run"] = (name, args) => {
    ran.push([name, ...args]);
    return Promise.resolve(outputs[name]);
  };
  return { ran, lists: new AccessLists(String.raw`C:\Users\Ada`, { run }) };
}

Deno.test("restrict() lets only the user, the system and administrators use a folder", async () => {
  const { ran, lists } = withPrograms({ whoami: "PC\\ada  S-1-5-21-1-2-3-1001\r\n", icacls: "" });
  await lists.restrict(HOME);
  const grants = ["S-1-5-21-1-2-3-1001", "S-1-5-18", "S-1-5-32-544"];
  const wanted = ["icacls", HOME, "/inheritance:r", "/grant:r"];
  assert.deepEqual(ran, [
    ["whoami", "/user"],
    [...wanted, ...grants.map((one) => `*${one}:(OI)(CI)F`)],
  ]);
});

Deno.test("restrict() changes nothing inside the profile or without the user's id", async () => {
  const inside = withPrograms({ whoami: "S-1-5-21-1" });
  await inside.lists.restrict(String.raw`c:\users\ADA\.pml`);
  assert.deepEqual(inside.ran, []);
  const unknown = withPrograms({});
  await unknown.lists.restrict(HOME);
  assert.deepEqual(unknown.ran, [["whoami", "/user"]]);
});

Deno.test("whyShared() returns the reason why other users may use a folder", async () => {
  const reason = (icacls?: string, folder = HOME) =>
    withPrograms(icacls === undefined ? {} : { icacls }).lists.whyShared(folder);
  assert.match(await reason("D:\\pml BUILTIN\\Users:(I)(OI)(CI)(RX)") ?? "", /it inherits/);
  assert.match(await reason("") ?? "", /does not show/);
  assert.match(await reason() ?? "", /does not show/);
  assert.equal(await reason("D:\\pml PC\\ada:(OI)(CI)(F)"), undefined);
  assert.equal(await reason(undefined, String.raw`C:\Users\Ada\.pml`), undefined);
});
