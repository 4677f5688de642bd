/**
 * Reads the bytes of modules and hashes them, without running them.
 *
 * @module
 */

import { type ErrorCode, PmlError, type PmlErrorOptions } from "../../core/errors.ts";
import { integrityOf } from "../../core/hash.ts";
import { quoted } from "../../core/json.ts";
import { stampOf } from "../../io/place.ts";
import { readRegular, whyUnread } from "../../io/regular_file.ts";
import type { ServerGrants } from "../../policy/grants.ts";
import type { ModuleHashes } from "../../policy/policy.ts";

/** The source of a module's code: shipped with PML, or a file that the user named. */
export type ModuleSource =
  | {
    readonly kind: "builtin";
    readonly name: string;
    readonly code: Uint8Array;
    readonly meta: unknown;
    /** The grants that it has without an approval request. */
    readonly grants?: ServerGrants;
  }
  | {
    readonly kind: "file";
    readonly name: string;
    readonly path: string;
    /** The content of the file when the author's PML read it. */
    readonly draft?: ModuleCode;
    /** Whether the author agreed to grants for the draft. Without them it runs with nothing granted. */
    readonly isGranted?: boolean;
  };

/** The exact bytes of a module and their hash. No part of it has run. */
export interface ModuleCode {
  readonly code: Uint8Array;
  readonly integrity: string;
}

/** The code of a file that was read, and the stamp that shows whether the file has changed. */
interface FileMemo {
  readonly stamp: string;
  readonly code: ModuleCode;
}

/** Reads modules' bytes and hashes them. An unchanged file is not read again. */
export class ModuleFiles implements ModuleReader, ModuleHashes {
  readonly #memos = new Map<string, FileMemo>();

  /** Reads a module. Throws if it has more than `maxBytes` bytes. */
  identify(source: ModuleSource, maxBytes: number): ModuleCode {
    const key = source.kind === "file" ? source.path : `builtin:${source.name}`;
    const memo = this.#memos.get(key);
    const stamp = source.kind === "file"
      ? stampOf(readable(source.path, () => Deno.statSync(source.path)))
      : "";
    if (memo?.stamp === stamp && memo.code.code.length <= maxBytes) return memo.code;
    const code = source.kind === "file"
      ? readable(source.path, () => readRegular(source.path, { most: maxBytes, links: true })).bytes
      : source.code;
    const identified = { code, integrity: integrityOf(code) };
    this.#memos.set(key, { stamp, code: identified });
    return identified;
  }

  /** Returns the hash of a module's file; undefined if it cannot be read. */
  integrityOf(
    module: { readonly name: string; readonly path: string },
    maxBytes: number,
  ): string | undefined {
    try {
      const { name, path } = module;
      return this.identify({ kind: "file", name, path }, maxBytes).integrity;
    } catch {
      // There is nothing to approve. Loading the module reports why it cannot be read.
      return undefined;
    }
  }
}

function readable<T>(path: string, look: () => T): T {
  try {
    return look();
  } catch (cause) {
    const hint = "Fix the file, or the path that names it";
    throw unloadable(path, whyUnread(cause), { code: "UPSTREAM_DOWN", hint, cause });
  }
}

/** Returns the error of a module that cannot be loaded. */
export function unloadable(
  path: string,
  why: string,
  { code = "CONFIG_INVALID", ...more }: PmlErrorOptions & { readonly code?: ErrorCode },
): PmlError {
  return new PmlError(code, `Cannot load the module ${quoted(path, 300)}: ${why}`, more);
}

/** Reads the bytes of modules. `ModuleFiles` is one. */
export interface ModuleReader {
  /** Reads a module. Throws if it has more than `maxBytes` bytes. */
  identify(source: ModuleSource, maxBytes: number): ModuleCode;
}
