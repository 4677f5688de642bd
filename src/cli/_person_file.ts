/**
 * Sets one value in the person's `config.yaml`, and keeps all else in it: comments, order, spelling.
 *
 * @module
 */

import type { App } from "../app.ts";
import { isObject } from "../core/json.ts";
import { place, refused } from "./_files.ts";
import { findTarget } from "./_import_file.ts";

/** Sets what stands under keys; gives the path of the file, which is made where there is none. */
export async function setForPerson(
  app: App,
  { keys, value }: { readonly keys: readonly string[]; readonly value: unknown },
): Promise<string> {
  const { path, found } = await findTarget(app, false);
  const yaml = await import("yaml");
  const before = found?.text ?? "";
  const document = yaml.parseDocument(before, { version: "1.2", logLevel: "error" });
  document.setIn(keys, document.createNode(value));
  const text = document.toString({ lineWidth: 0 });
  const wanted = withValue(yaml.parse(before), { keys, value });
  if (JSON.stringify(yaml.parse(text)) !== JSON.stringify(wanted)) {
    throw refused(path, "it cannot be edited without another change");
  }
  if (text === before) return path;
  await app.policy.store.whileEditing(path, async () => {
    const over = found === undefined ? {} : { over: found.text };
    await place(path, { text, mode: found?.mode ?? 0o600, ...over });
  });
  return path;
}

function withValue(
  from: unknown,
  { keys: [key, ...rest], value }: { readonly keys: readonly string[]; readonly value: unknown },
): unknown {
  if (key === undefined) return value;
  const own = isObject(from) ? from : {};
  return { ...own, [key]: withValue(own[key], { keys: rest, value }) };
}
