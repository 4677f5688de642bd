/**
 * Opens one of several processes that serve one PML together.
 *
 * @module
 */

import { dirname, join, resolve } from "node:path";
import type { App } from "../app/app.ts";
import type { PersonValues } from "../config/settings.ts";
import { PmlError } from "../core/errors.ts";
import { isSharedMode } from "../io/private_files.ts";
import { readRegular } from "../io/regular_file.ts";
import { Replica } from "../transport/replicas/replica.ts";

const LEAST = 32;
const MOST_BYTES = 4_096;

/** Opens this process as one of several. Throws CONFIG_INVALID if they have no key in common. */
export function replicaOf(app: App, settings: NonNullable<PersonValues["serve"]>): Replica {
  const { sealing_key: key, replica_address: at = "127.0.0.1:0" } = settings;
  const [, host = "", port] = /^(.*):(\d+)$/.exec(at) ?? [];
  const { home, limits: { approvalMs } } = app.config();
  if (key === undefined) throw invalid("it is missing");
  const [, name] = /^\$\{(\w+)\}$/.exec(key) ?? [];
  const value = (name === undefined ? fileOf(app, key) : variableOf(app, name)).trim();
  // guard: sealing-key-short
  if (value.length < LEAST) throw invalid(`it has ${value.length} bytes`);
  app.parts.redactor.register(value);
  const secret = new TextEncoder().encode(value);
  const place = { home, secret, host, port: Number(port) };
  return new Replica({ ...place, ttl: approvalMs }, app.log);
}

function variableOf(app: App, name: string): string {
  const key = app.keys.find(name);
  // A workspace may not bring the key along.
  // guard: sealing-key-brought
  if (key?.from === "the environment") return key.value;
  throw invalid(`${name} is not set in the environment`);
}

function fileOf(app: App, path: string): string {
  const { person, environment } = app.loaded();
  const file = /^~[\\/]/.test(path)
    ? join(environment.userHome, path.slice(2))
    : resolve(dirname(person.path), path);
  const { bytes, info } = read(file);
  if (isSharedMode(info)) throw invalid("others can read its file");
  // Each byte is a character, also of a file that is no text.
  return new TextDecoder("latin1").decode(bytes);
}

/** The error does not contain the path: the user may have written the key itself there. */
function read(file: string) {
  try {
    return readRegular(file, { most: MOST_BYTES, links: true });
  } catch {
    throw invalid("its file cannot be read");
  }
}

function invalid(why: string): PmlError {
  return new PmlError("CONFIG_INVALID", `Cannot use serve.sealing_key: ${why}`, {
    hint: "Name a file of at least 32 random bytes only you can read, or ${NAME}",
  });
}
