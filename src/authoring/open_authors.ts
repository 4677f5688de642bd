/**
 * Opens what authors of modules use: no approval is needed, and nothing is granted.
 *
 * @module
 */

import { Authors } from "./authors.ts";
import type { App } from "../app/app.ts";

/** Returns the tools of authors. */
export async function authorsOf(app: App): Promise<Authors> {
  const { schemas: checker } = await (await app.callPath()).machine.modules();
  return new Authors(app.policy, app.builtins, checker);
}
