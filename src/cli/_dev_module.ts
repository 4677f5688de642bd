/**
 * The module that `pml dev` watches: checks it, and calls its tools through the pipeline.
 *
 * @module
 */

import type { Authors } from "../authoring/authors.ts";
import { setDraft } from "../authoring/draft.ts";
import { DraftAnswer, DraftApproval } from "../authoring/draft_approval.ts";
import { openAuthors } from "../authoring/open_authors.ts";
import { asPmlError } from "../core/errors.ts";
import { type JsonObject, quoted } from "../core/json.ts";
import { type ModuleTool, NO_PERMISSIONS, unionOfPermissions } from "../protocol/tool.ts";
import { toolId } from "../core/tool_id.ts";
import { realPathIfAny } from "../io/path_info.ts";
import { moduleOf } from "../servers/kinds.ts";
import { parseArguments, parseObject } from "./_arguments.ts";
import { callWithAnswers } from "./_call.ts";
import type { CommandContext } from "./_command_context.ts";
import { adviceOn, type GrantAdvice, missingPermission } from "./_dev_grant.ts";
import type { DevOutput } from "./_dev_output.ts";
import { usage } from "./_failure.ts";
import { resultText } from "./_result.ts";

type ModuleCheck = Awaited<ReturnType<Authors["checkModule"]>>;

/** The watched file of a module. */
export interface WatchedFile {
  /** The real path; the typed path if the file did not exist. */
  readonly path: string;
  /** Whether the file or one of its imports changed after the last check. */
  readonly isStale: boolean;
}

/** A call of one of the module's tools. */
interface DevCall {
  readonly tool: string;
  readonly arguments: JsonObject;
}

/** Checks a module and calls its tools. */
export class DevModule {
  readonly #context: CommandContext;
  readonly #file: WatchedFile;
  readonly #output: DevOutput;
  readonly #answer = new DraftAnswer();
  /** The last call of each tool. */
  readonly #callsByTool = new Map<string, DevCall>();
  #lastCheck: ModuleCheck | undefined;
  #lastCall: DevCall | undefined;
  #hasFailed = false;

  /** Stores the parts. Reads nothing yet. */
  constructor(context: CommandContext, file: WatchedFile, output: DevOutput) {
    this.#context = context;
    this.#file = file;
    this.#output = output;
  }

  /** Whether the last check or the last call failed. */
  get isFailed(): boolean {
    return this.#hasFailed || this.#lastCheck?.report.ok !== true;
  }

  /** Checks the present file, with `withTypes` also its types. Then repeats the last call. */
  async check(withTypes: boolean): Promise<void> {
    const { app, signal } = this.#context;
    const { path } = this.#file;
    const since = Date.now();
    const checked = await (await openAuthors(app)).checkModule(path, signal, withTypes);
    this.#lastCheck = checked;
    (await (await app.callPath()).machine.modules()).closeAllUnused();
    const { ok, checks } = checked.report;
    const { server, runs } = this.#place();
    const tools = this.#tools().map(({ definition }) => definition.name);
    this.#output.show({
      event: "check",
      ok,
      ms: Date.now() - since,
      server,
      runs,
      tools,
      // Grants are reported when a permission is missing.
      checks: checks.filter(({ name }) => name !== "permissions"),
    });
    const last = this.#lastCall;
    if (last !== undefined && tools.includes(last.tool)) await this.#call(() => last, true);
  }

  /** Runs the call of a typed line, or repeats the last call if the line is empty. */
  async type(line: string): Promise<void> {
    if (line === "help" && this.#tool(line) === undefined) {
      const tools = this.#tools().map(({ definition }) => definition.name);
      return this.#output.show({ event: "help", tools });
    }
    if (line !== "" || this.#lastCall !== undefined) {
      await this.#call(() => this.#parse(line), false);
    }
  }

  #parse(line: string): DevCall {
    const [name = this.#lastCall?.tool ?? "", ...pairs] = wordsOf(line);
    const tool = name.slice(name.indexOf(":") + 1);
    const schema = this.#tool(tool)?.definition.inputSchema;
    if (schema === undefined) {
      const names = this.#tools().map(({ definition }) => definition.name).join(", ");
      throw usage(
        `Cannot call ${quoted(tool)}: the module has no such tool`,
        names === "" ? "Fix the module first" : `It has ${names}`,
      );
    }
    const object = /^\S+\s+(\{.*)$/s.exec(line)?.[1];
    const args = object ? parseObject(object) : parseArguments(pairs, { base: {}, schema });
    const isBare = object === undefined && pairs.length === 0;
    return isBare && this.#callsByTool.get(tool) || { tool, arguments: args };
  }

  async #call(parse: () => DevCall, repeated: boolean): Promise<void> {
    const { app, signal } = this.#context;
    const since = Date.now();
    let call: DevCall | undefined;
    const about = (message: string) => ({
      ...call,
      repeated,
      ms: Date.now() - since,
      stale: this.#file.isStale,
      grant: call && this.#advice(call.tool, message),
    });
    try {
      const { tool, arguments: args } = this.#lastCall = call = parse();
      this.#callsByTool.set(tool, call);
      const { server, draft } = this.#place();
      await setDraft(app, draft);
      const result = await callWithAnswers(
        { id: toolId(server, tool), arguments: args },
        this.#context,
        { isDraft: true },
      );
      this.#hasFailed = result.isError === true;
      const message = this.#hasFailed ? resultText(result) : "";
      this.#output.show({ event: "call", ...call, ...about(message), result });
    } catch (error) {
      signal.throwIfAborted();
      this.#hasFailed = true;
      const { code, message, hint: ownHint } = asPmlError(error);
      // The hint of a call is for a model. The author needs the names of the arguments.
      const { properties } = call && this.#tool(call.tool)?.definition.inputSchema || {};
      const hint = code === "BAD_ARGUMENTS" && properties
        ? `It takes ${Object.keys(properties).join(", ")}`
        : ownHint;
      this.#output.show({ event: "error", ...about(message), code, message, hint });
    }
  }

  #advice(tool: string, message: string): GrantAdvice | undefined {
    const missing = missingPermission(message);
    if (missing === undefined) return undefined;
    const { app } = this.#context;
    const { path } = this.#file;
    const { server, draft } = this.#place();
    const { workspace, grants } = app.config();
    return adviceOn(missing, {
      server,
      path,
      workspace,
      file: app.policy.rulesFile,
      permissions: this.#tool(tool)?.permissions ?? NO_PERMISSIONS,
      granted: draft === undefined || draft.approval ? grants[server] ?? {} : undefined,
    });
  }

  #tools(): readonly ModuleTool[] {
    return this.#lastCheck?.meta?.tools ?? [];
  }

  #tool(tool: string): ModuleTool | undefined {
    return this.#tools().find(({ definition }) => definition.name === tool);
  }

  /**
   * Returns the present name of the module, a text about its permissions, and the draft to call. The
   * draft has grants if the workspace file defines the module.
   */
  #place() {
    const { app } = this.#context;
    const { path } = this.#file;
    const { rulesFile } = app.policy;
    const ownDefinition = app.loaded().file?.servers.find((definition) => {
      const module = moduleOf(definition);
      return module !== undefined && realPathIfAny(module.path) === path &&
        app.directory.get(definition.name).definition === definition;
    });
    const { meta, code } = this.#lastCheck ?? {};
    if (ownDefinition !== undefined) {
      const { name } = ownDefinition;
      const runs = `It has the grants of ${rulesFile}; changed code asks you once`;
      // Until the file is trusted, the question about the file comes first.
      if (code === undefined || !app.config().trusted) return { server: name, runs };
      const approval = new DraftApproval(app, {
        definition: ownDefinition,
        path,
        integrity: code.integrity,
        permissions: unionOfPermissions(this.#tools().map(({ permissions }) => permissions)),
        answer: this.#answer,
      });
      return { server: name, runs, draft: { name, path, code, approval } };
    }
    let server = meta?.name ?? "module";
    // The name must differ from the names of all other servers.
    while (app.directory.isTaken(server)) server += "-dev";
    const runs = `It is not in ${rulesFile}: it runs in the sandbox with nothing granted`;
    return { server, runs, ...(code && { draft: { name: server, path, code } }) };
  }
}

/** Returns the words of a line. Quotes keep spaces together, as in a shell. */
function wordsOf(line: string): readonly string[] {
  const words = line.match(/(?:"[^"]*"|'[^']*'|\S)+/g) ?? [];
  return words.map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}
