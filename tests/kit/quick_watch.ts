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
/** The request that did not run at once last. It is asked again on its way through the gates. */
let last: string | undefined;

QuickCalls.prototype.begin = function (request) {
  const cancel = begin.call(this, request);
  const isAgain = cancel === undefined && last !== undefined && last === request.request;
  last = request.request;
  if (path !== undefined && !isAgain) write(path, cancel ? "+" : "-", { append: true });
  return cancel;
};
