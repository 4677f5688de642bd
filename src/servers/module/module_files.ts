/**
 * Reads the bytes of modules and hashes them, without running them.
 *
 * @module
 */

import { type ErrorCode, PmlError, type PmlErrorOptions } from "../../core/errors.ts";
import { integrityOf } from "../../core/hash.ts";
import { quoted } from "../../core/json.ts";
import { stampOf } from "../../io/path_info.ts";
import { readRegular, whyUnread } from "../../io/regular_file.ts";
import type { ServerGrants } from "../../policy/grants.ts";
import type { ModuleHashes } from "../../policy/policy.ts";

/** The names of the arguments of a module's tools that are paths, relative to the workspace. */
export interface PathArguments {
  /** Paths that a tool reads or, if it can write, changes. */
  readonly used?: readonly string[];
  /** Folders in which a tool runs a program. */
  readonly entered?: readonly string[];
}

/** The source of a module's code: it ships with PML, or is a file that the user named. */
export type ModuleSource =
  | {
    readonly kind: "builtin";
    readonly name: string;
    readonly code: Uint8Array;
    readonly meta: unknown;
    /** The grants that the module has without an approval request. */
    readonly grants?: ServerGrants;
    readonly paths?: PathArguments | undefined;
  }
  | {
    readonly kind: "file";
    readonly name: string;
    readonly path: string;
    /** The content of the file when PML read it, for a draft that the author tries out. */
    readonly draft?: ModuleCode;
    /**
     * Whether the author agreed to the grants of the draft. Otherwise the draft runs without
     * grants.
     */
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
      ? stampOf(readOrThrow(source.path, () => Deno.statSync(source.path)))
      : "";
    if (memo?.stamp === stamp && memo.code.code.length <= maxBytes) return memo.code;
    const code = source.kind === "file"
      ? readOrThrow(source.path, () => readRegular(source.path, { most: maxBytes, links: true }))
        .bytes
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
      // Without code there is nothing to approve. Loading the module reports the reason.
      return undefined;
    }
  }
}

function readOrThrow<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    const hint = "Fix the file, or the path that names it";
    throw unloadableError(path, whyUnread(cause), { code: "UPSTREAM_DOWN", hint, cause });
  }
}

/** Returns the error for a module that cannot be loaded. */
export function unloadableError(
  path: string,
  why: string,
  { code = "CONFIG_INVALID", ...more }: PmlErrorOptions & { readonly code?: ErrorCode },
): PmlError {
  return new PmlError(code, `Cannot load the module ${quoted(path, 300)}: ${why}`, more);
}

/** Reads the bytes of modules. `ModuleFiles` implements it. */
export interface ModuleReader {
  /** Reads a module. Throws if it has more than `maxBytes` bytes. */
  identify(source: ModuleSource, maxBytes: number): ModuleCode;
}
