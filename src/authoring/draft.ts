/**
 * Makes a server of a module that its author is writing.
 *
 * @module
 */

import type { FindTool } from "../servers/known_server.ts";
import { splitToolId } from "../core/tool_id.ts";
import { unknownTool } from "../servers/lists/unknown_tool.ts";
import type { ModuleUse } from "../servers/module/loader.ts";
import type { ModuleCode } from "../servers/module/module_files.ts";
import { ModuleServer } from "../servers/module/module_server.ts";
import { MODULE } from "../servers/module/kind.ts";
import type { App } from "../app/app.ts";
import type { DraftApproval } from "./draft_approval.ts";
import { NothingToApprove } from "../servers/sources/nothing_to_approve.ts";

/** A module that is being written, with the content of its file at one time. */
export interface Draft {
  readonly name: string;
  readonly path: string;
  readonly code: ModuleCode;
  /** How it gets its grants, if the workspace file names it. */
  readonly approval?: DraftApproval | undefined;
}

/**
 * Sends calls of this name to a draft, through the same checks as all calls. It runs exactly these
 * bytes. Without an approval it has no grant, so that none is needed. Undefined removes the draft.
 */
export async function takeDraft(app: App, draft: Draft | undefined): Promise<void> {
  const callPath = await app.callPath();
  callPath.draft = undefined;
  if (draft === undefined) return;
  const { name, path, code, approval } = draft;
  const modules = await callPath.machine.modules();
  const use = (): ModuleUse => ({
    source: { kind: "file", name, path, draft: code, isGranted: approval !== undefined },
    approved: undefined,
    grants: approval?.grants(),
  });
  const find: FindTool = async (id) => {
    const { definitions } = await modules.load(use());
    const definition = definitions.find((one) => one.name === splitToolId(id).tool);
    if (definition === undefined) throw unknownTool(id, app.servers);
    return definition;
  };
  // The listing of an unknown name, with the kind of a module; of its file's name with a grant.
  const listing = {
    ...app.directory.at(name),
    kind: MODULE.name,
    checksItself: false,
    blocked: () => undefined,
  };
  const options = {
    listing,
    approval: approval ?? new NothingToApprove("a module that you write, with no grant"),
    find,
  };
  callPath.draft = new ModuleServer(options, modules, { use });
}
