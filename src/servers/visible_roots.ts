/**
 * The roots that servers may see.
 *
 * @module
 */

import { fileURLToPath, pathToFileURL } from "node:url";
import type { JsonObject } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import { isInside, realPathIfAny } from "../io/place.ts";
import type { Policy } from "../policy/policy.ts";
import type { ClientRoots } from "./client_roots.ts";

/**
 * Returns the roots that a server may see: those of the client inside of the workspace, and others
 * only by a rule that names `SERVER:@roots`; else the workspace.
 */
export async function rootsFor(
  server: string,
  { policy, clientRoots }: {
    readonly policy: Pick<Policy, "now">;
    readonly clientRoots?: Pick<ClientRoots, "get"> | undefined;
  },
): Promise<readonly JsonObject[]> {
  const id = toolId(server, "@roots");
  const isAllowed = () => policy.now.judge(id).kind === "allow";
  if (!isAllowed()) return [];
  const { loaded: { workspace: { root, found } } } = policy.now;
  const own = [{ uri: pathToFileURL(root).href, name: "workspace" }];
  // The user named the workspace.
  if (found === "PML_WORKSPACE") return own;
  const roots = await clientRoots?.get() ?? [];
  // The rules may have changed meanwhile.
  if (!isAllowed()) return [];
  const isNamed = policy.now.judge(id).rule === id;
  const visible = roots.filter(({ uri }) => isNamed || isInWorkspace(String(uri), root));
  return visible.length > 0 ? visible : own;
}

function isInWorkspace(uri: string, root: string): boolean {
  try {
    const path = realPathIfAny(fileURLToPath(uri));
    return path !== undefined && isInside(root, path);
  } catch {
    return false; // no file
  }
}
