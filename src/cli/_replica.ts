/**
 * Makes this process a replica: one of several processes that serve the same PML together.
 *
 * @module
 */

import { dirname, join, resolve } from "node:path";
import type { App } from "../app/app.ts";
import type { UserConfigValues } from "../config/settings.ts";
import { PmlError } from "../core/errors.ts";
import { isSharedMode } from "../io/private_files.ts";
import { readRegular } from "../io/regular_file.ts";
import { Replica } from "../transport/replicas/replica.ts";

const KEY_CHARACTERS_MIN = 32;
const KEY_FILE_BYTES_MAX = 4_096;

/** Creates a replica. Throws `CONFIG_INVALID` if the shared key is missing, too short or unreadable. */
export function createReplica(app: App, settings: NonNullable<UserConfigValues["serve"]>): Replica {
  const { sealing_key: key, replica_address: address = "127.0.0.1:0" } = settings;
  const [, host = "", port] = /^(.*):(\d+)$/.exec(address) ?? [];
  const { home, limits: { approvalMs } } = app.config();
  if (key === undefined) throw invalidKey("it is missing");
  const [, name] = /^\$\{(\w+)\}$/.exec(key) ?? [];
  const value = (name === undefined ? readKeyFile(app, key) : readVariable(app, name)).trim();
  // guard: sealing-key-short
  if (value.length < KEY_CHARACTERS_MIN) throw invalidKey(`it has ${value.length} bytes`);
  app.parts.redactor.register(value);
  const secret = new TextEncoder().encode(value);
  return new Replica({ home, secret, host, port: Number(port), ttl: approvalMs }, app.log);
}

function readVariable(app: App, name: string): string {
  const key = app.keys.find(name);
  // A key from a file of the workspace does not count, because the author of the file knows it.
  // guard: sealing-key-brought
  if (key?.from === "the environment") return key.value;
  throw invalidKey(`${name} is not set in the environment`);
}

function readKeyFile(app: App, path: string): string {
  const { userConfig, environment } = app.loaded();
  const file = /^~[\\/]/.test(path)
    ? join(environment.userHome, path.slice(2))
    : resolve(dirname(userConfig.path), path);
  const { bytes, info } = readFile(file);
  if (isSharedMode(info)) throw invalidKey("other users can read its file");
  // In Latin-1 each byte is one character, so the file need not be text.
  return new TextDecoder("latin1").decode(bytes);
}

/** Reads a file. The error does not contain the path, which may be the key itself by mistake. */
function readFile(file: string) {
  try {
    return readRegular(file, { most: KEY_FILE_BYTES_MAX, links: true });
  } catch {
    throw invalidKey("its file cannot be read");
  }
}

function invalidKey(why: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot use serve.sealing_key: ${why}`, {
    hint: "Name a file with at least 32 random bytes that only you can read, or write ${NAME}",
  });
}
