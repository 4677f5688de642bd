/**
 * Makes a server of a module that its author is writing and that no configuration names.
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
import { NothingToApprove } from "../servers/sources/nothing_to_approve.ts";

/** A module that is being written, with the content of its file at one time. */
export interface Draft {
  readonly name: string;
  readonly path: string;
  readonly code: ModuleCode;
}

/**
 * Sends calls of this name to a draft, through the same checks as all calls. It runs exactly these
 * bytes, without any grant, so that no approval is needed. Undefined removes the draft.
 */
export async function takeDraft(app: App, draft: Draft | undefined): Promise<void> {
  const callPath = await app.callPath();
  callPath.draft = undefined;
  if (draft === undefined) return;
  const { name, path, code } = draft;
  const modules = await callPath.machine.modules();
  const use: ModuleUse = {
    source: { kind: "file", name, path, draft: code },
    approved: undefined,
    grants: undefined,
  };
  const find: FindTool = async (id) => {
    const { definitions } = await modules.load(use);
    const definition = definitions.find((one) => one.name === splitToolId(id).tool);
    if (definition === undefined) throw unknownTool(id, app.servers);
    return definition;
  };
  // The listing of an unknown name, with the kind of a module.
  const listing = { ...app.directory.at(name), kind: MODULE.name, checksSchemas: false };
  const approval = new NothingToApprove("a module that you write, with no grant");
  callPath.draft = new ModuleServer({ listing, approval, find }, modules, { use: () => use });
}
