/**
 * Sets one value in the person's `config.yaml`, and changes nothing else that it says.
 *
 * @module
 */

import type { App } from "../app.ts";
import { changeOf } from "./_config_file.ts";
import type { Setting } from "./_yaml_text.ts";

/** Sets what stands under keys; gives the path of the file, which is made where there is none. */
export async function setForPerson(
  app: App,
  { keys, value }: { readonly keys: Setting["at"]; readonly value: unknown },
): Promise<string> {
  const settings = [{ at: keys, entry: value }];
  const { path, diff, write } = await changeOf(app, { workspace: false, settings });
  if (diff !== "") await write();
  return path;
}
