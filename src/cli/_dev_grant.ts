/**
 * Finds the permissions that a module lacks, and the change of a file that grants them.
 *
 * @module
 */

import { dirname, relative, resolve } from "node:path";
import type { Permissions } from "../protocol/tool.ts";
import { isInside } from "../io/place.ts";

type ServerGrants = Partial<Permissions>;

/** A permission that a call did not have. */
export interface MissingPermission {
  readonly kind: keyof Permissions;
  readonly item: string;
  /** Whether only a grant that names it opens it, wherever it lies. */
  readonly isProtected: boolean;
}

/** The module whose call failed, and where things lie. */
export interface GrantPlace {
  readonly server: string;
  readonly path: string;
  readonly workspace: string;
  /** The workspace file, which may not exist. */
  readonly file: string;
  /** The permissions that `__meta__` requests for the tool. */
  readonly permissions: Permissions;
  /** The grants of the server in that file; undefined if the file does not name the module. */
  readonly granted: ServerGrants | undefined;
}

/** The changes that grant a missing permission. */
export interface GrantAdvice {
  /** The permissions to add to `__meta__`; undefined if it requests them already. */
  readonly ask?: ServerGrants | undefined;
  /** The grants for the workspace file; undefined if it has them. */
  readonly file?: string;
  readonly config?: unknown;
}

const READS = /read|open|stat|run|list|look/i;
const DENIED =
  /Cannot ([\w .]+) "((?:[^"\\]|\\.)*)": (?:th\w+ module has no (\w+) grant for (\S+)|it is (?:outside|(protected)))/;

/** Returns the permission that an error message names as missing; undefined if it names none. */
export function missingPermission(message: string): MissingPermission | undefined {
  const [, op = "", name, item, host, isProtected] = DENIED.exec(message) ?? [];
  if (name === undefined) return undefined;
  // The pattern finds no other names of permissions.
  const kind = (item ?? (READS.test(op) ? "read" : "write")) as keyof Permissions;
  return {
    kind,
    item: kind === "net" ? hostOf(host ?? "") : name,
    isProtected: isProtected !== undefined,
  };
}

/** Returns the changes that grant a missing permission. */
export function adviceOn(
  { kind, item, isProtected }: MissingPermission,
  { server, path, workspace, file, permissions, granted }: GrantPlace,
): GrantAdvice {
  const isPath = kind === "read" || kind === "write";
  const at = resolve(workspace, item);
  const isBeyond = isProtected || !isPath || !isInside(workspace, at);
  const isAsked = permissions[kind].some((one) =>
    isPath
      ? isBeyond || isInside(resolve(workspace, one), at)
      : one === "*" || hostOf(one) === hostOf(item)
  );
  const way = `./${relative(dirname(file), path).replaceAll("\\", "/")}`;
  const config = {
    private_mcps: granted ? undefined : { [server]: { type: "deno", path: way } },
    grants: isBeyond
      ? { [server]: { ...granted, [kind]: [...granted?.[kind] ?? [], item] } }
      : undefined,
  };
  return {
    ask: isAsked ? undefined : { [kind]: [item] },
    ...((!granted || isBeyond) && { file, config }),
  };
}

/** Returns the lines that tell what to write. */
export function adviceLines({ ask, file, config }: GrantAdvice, module: string): readonly string[] {
  return [
    ask ? `Write into __meta__ of ${module}: permissions: ${JSON.stringify(ask)}` : "",
    config ? `Put this into ${file}, then run \`pml trust\`:` : "",
    config ? JSON.stringify(config, null, 2) : "",
  ];
}

/** Returns a host as `__meta__` has it. Other names stay as they are. */
function hostOf(name: string): string {
  return name.replace(/:443$/, "");
}
