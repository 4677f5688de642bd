/**
 * The roots that servers may see.
 *
 * @module
 */

import { fileURLToPath, pathToFileURL } from "node:url";
import type { JsonObject } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import { isInside, realPathIfAny } from "../io/path_info.ts";
import type { Policy } from "../policy/policy.ts";
import type { ClientRoots } from "./client_roots.ts";

/**
 * Returns the roots that a server may see: the client's roots inside the workspace. If the rule
 * that applies names exactly `SERVER:@roots`, these are all roots of the client. Without such
 * roots, returns the workspace. Returns no roots if no rule allows them.
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
  const workspaceRoots = [{ uri: pathToFileURL(root).href, name: "workspace" }];
  // The user set the workspace explicitly, so the client's roots are not used.
  if (found === "PML_WORKSPACE") return workspaceRoots;
  const roots = await clientRoots?.get() ?? [];
  // The rules may have changed while the client answered.
  if (!isAllowed()) return [];
  const isNamed = policy.now.judge(id).rule === id;
  const visible = roots.filter(({ uri }) => isNamed || isInWorkspace(String(uri), root));
  return visible.length > 0 ? visible : workspaceRoots;
}

function isInWorkspace(uri: string, root: string): boolean {
  try {
    const path = realPathIfAny(fileURLToPath(uri));
    return path !== undefined && isInside(root, path);
  } catch {
    return false; // not the URL of a file
  }
}
