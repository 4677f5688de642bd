/**
 * Notes which calls ran at once, where it is loaded before PML: one line a call that came there, in
 * the file that `QUICK_FILE` names.
 *
 * @module
 */

import { QuickCalls } from "../../src/app/quick_calls.ts";

const path = Deno.env.get("QUICK_FILE");
const { begin } = QuickCalls.prototype;
const write = Deno.writeTextFileSync;

QuickCalls.prototype.begin = function (request) {
  const cancel = begin.call(this, request);
  if (path !== undefined) write(path, cancel === undefined ? "-" : "+", { append: true });
  return cancel;
};
