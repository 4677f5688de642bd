/**
 * Creates a server for a draft, a module that its author is writing.
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

/** A module that its author is writing, with the content of its file at one time. */
export interface Draft {
  readonly name: string;
  readonly path: string;
  readonly code: ModuleCode;
  /** The approval through which the draft gets grants, if the workspace file defines the module. */
  readonly approval?: DraftApproval | undefined;
}

/**
 * Makes calls with the name of a draft go to the draft, through the same checks as all calls.
 * Exactly the bytes in `code` run. A draft without `approval` gets no grants, so its calls need no
 * approval. Undefined removes the draft.
 */
export async function setDraft(app: App, draft: Draft | undefined): Promise<void> {
  const callPath = await app.callPath();
  callPath.draft = undefined;
  if (draft === undefined) return;
  const { name, path, code, approval } = draft;
  const modules = await callPath.machine.modules();
  const use = (): ModuleUse => ({
    source: { kind: "file", name, path, draft: code, isGranted: approval !== undefined },
    expectedHash: undefined,
    grants: approval?.grants(),
  });
  const find: FindTool = async (id) => {
    const { definitions } = await modules.load(use());
    const definition = definitions.find(({ name }) => name === splitToolId(id).tool);
    if (definition === undefined) throw unknownTool(id, app.servers);
    return definition;
  };
  // The directory lists the name as unknown, or as the module of the workspace file. The draft is a
  // module that may run, so these members are replaced.
  const listing = {
    ...app.directory.get(name),
    kind: MODULE.name,
    checksItself: false,
    whyBlocked: () => undefined,
  };
  const options = {
    listing,
    approval: approval ?? new NothingToApprove("a module that you write, with no grant"),
    find,
  };
  callPath.draft = new ModuleServer(options, modules, { use });
}
