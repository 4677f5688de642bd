/**
 * Finds the permission that a module lacks, and the changes of files that grant it.
 *
 * @module
 */

import { dirname, relative, resolve } from "node:path";
import type { Permissions } from "../protocol/tool.ts";
import { isInside } from "../io/path_info.ts";

type ServerGrants = Partial<Permissions>;

/** A permission that a call did not have. */
export interface MissingPermission {
  readonly kind: keyof Permissions;
  readonly item: string;
  /** Whether the item needs its own grant, even if it is in the workspace. */
  readonly isProtected: boolean;
}

/** The module whose call failed, its paths and its permissions. */
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
  /** The permissions to add to `__meta__`; undefined if `__meta__` requests them already. */
  readonly ask?: ServerGrants | undefined;
  /** The path of the workspace file; undefined if it need not change. */
  readonly file?: string;
  /** The members to add to the workspace file. */
  readonly config?: unknown;
}

/** Matches the operations that read. All others write. */
const READ_OPERATION = /read|open|stat|run|list|look/i;
/** Matches the error message of a denied operation. */
const DENIED =
  /Cannot ([\w .]+) "((?:[^"\\]|\\.)*)": (?:th\w+ module has no (\w+) grant for (\S+)|it is (?:outside|(protected)))/;

/** Returns the permission that an error message names as missing; undefined if it names none. */
export function missingPermission(message: string): MissingPermission | undefined {
  const [, operation = "", name, permission, host, isProtected] = DENIED.exec(message) ?? [];
  if (name === undefined) return undefined;
  // Error messages contain only valid names of permissions.
  const kind =
    (permission ?? (READ_OPERATION.test(operation) ? "read" : "write")) as keyof Permissions;
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
  const itemPath = resolve(workspace, item);
  const needsGrant = isProtected || !isPath || !isInside(workspace, itemPath);
  const isRequested = permissions[kind].some((requested) =>
    isPath
      ? needsGrant || isInside(resolve(workspace, requested), itemPath)
      : requested === "*" || hostOf(requested) === hostOf(item)
  );
  const modulePath = `./${relative(dirname(file), path).replaceAll("\\", "/")}`;
  const config = {
    private_mcps: granted ? undefined : { [server]: { type: "deno", path: modulePath } },
    grants: needsGrant
      ? { [server]: { ...granted, [kind]: [...granted?.[kind] ?? [], item] } }
      : undefined,
  };
  return {
    ask: isRequested ? undefined : { [kind]: [item] },
    ...((!granted || needsGrant) && { file, config }),
  };
}

/** Returns the advice as lines for the author. */
export function adviceLines({ ask, file, config }: GrantAdvice, module: string): readonly string[] {
  return [
    ask ? `Write into __meta__ of ${module}: permissions: ${JSON.stringify(ask)}` : "",
    config ? `Put this into ${file}, then run \`pml trust\`:` : "",
    config ? JSON.stringify(config, null, 2) : "",
  ];
}

/** Returns a host as `__meta__` contains it: without the default port. */
function hostOf(name: string): string {
  return name.replace(/:443$/, "");
}
