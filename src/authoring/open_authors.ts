/**
 * Opens what authors of modules use: no approval is needed, and nothing is granted.
 *
 * @module
 */

import { Authors } from "./authors.ts";
import type { App } from "../app/app.ts";
import { exportedIn } from "../workflow/saved_capability.ts";

/** Returns the tools of authors. */
export async function authorsOf(app: App): Promise<Authors> {
  const config = () => app.config();
  const { schemas: checker } = await (await app.callPath()).machine.modules();
  return new Authors({ config, capability: exportedIn, taken: app.builtins, checker });
}
