/**
 * Compares tools and queries by meaning, with the model that the user configured in `search.model`.
 * Opens the model, the library that runs it and the vectors of tools at the first search.
 *
 * @module
 */

import { basename, join } from "node:path";
import type { Log } from "../audit/log.ts";
import { installEnvironment, serverEnvironment } from "../config/child_environment.ts";
import type { Environment } from "../config/env.ts";
import type { Limits } from "../config/limits.ts";
import type { CheckReport } from "../core/check.ts";
import { asPmlError, endingError, PmlError, withHint } from "../core/errors.ts";
import { quoted, withoutUndefined } from "../core/json.ts";
import { fileSize } from "../core/amounts.ts";
import { Embedder, type EmbedderOwner, type HashedModel } from "./embedding/embedder.ts";
import { EMBEDDER, EmbedderPackage, type PackageOwner } from "./embedding/embedder_package.ts";
import {
  type CheckedModel,
  type EmbeddingModel,
  ModelPins,
  readModel,
} from "./embedding/embedding_model.ts";
import { onAbort } from "../io/waiting.ts";
import type { GroupsOpener } from "../sandbox/reaper.ts";
import type { CatalogEntry } from "./catalog.ts";
import type { Semantics } from "./semantics.ts";
import { Vectors, type VectorsOwner } from "./vectors.ts";

/** The owner of a model. `Finder` implements it. */
export interface MeaningOwner extends GroupsOpener {
  readonly environment: Environment;
  readonly limits: Limits;
  readonly log: Log;
  /** Whether the process runs long, so that a search can install the library. */
  readonly isLongRunning: boolean;
  /** Returns the variables that make an installer use the user's proxy. */
  proxyVariables(): Readonly<Record<string, string>>;
  /** Is called when the last missing vectors of tools were computed. */
  onAllIndexed(): void;
}

/** The embedder and the vectors of an open model. */
interface OpenModel {
  readonly embedder: Embedder;
  readonly vectors: Vectors;
}

/** The result of trying a model. */
export interface TrialResult {
  readonly dimensions: number;
  readonly ms: number;
}

/**
 * The pause after a failure, during which search uses the built-in model. It doubles with each
 * failure.
 */
const RETRY_MS = 5_000;
const RETRY_MAX_MS = 300_000;
const QUERY_MS = 5_000;
const SINGLE_QUERY_MS = 30_000;
/** The text that is embedded to try a model. */
const SAMPLE = "Read the text of a file";

/** Compares tools and queries by meaning, with one model. */
export class Meaning
  implements Semantics, EmbedderOwner, PackageOwner, VectorsOwner, AsyncDisposable {
  /** Words and meanings count half each. */
  readonly weight = 0.5;
  readonly mode = "hybrid";
  /** The folder of the model, as it is configured. */
  readonly folder: string;
  /** The PML home. */
  readonly home: string;
  /** The log of this PML. */
  readonly log: Log;
  readonly #owner: MeaningOwner;
  readonly #package: EmbedderPackage;
  readonly #pins: ModelPins;
  readonly #closing = new AbortController();
  #opening: Promise<OpenModel> | undefined;
  #embedder: Embedder | undefined;
  #failures = 0;
  #retryAt = 0;
  #lastError: PmlError | undefined;

  /** Creates an instance for the folder of a model. Reads no files yet. */
  constructor(folder: string, owner: MeaningOwner) {
    this.#owner = owner;
    this.folder = folder;
    this.home = owner.environment.home;
    this.log = owner.log;
    this.#pins = new ModelPins(this.home);
    this.#package = new EmbedderPackage(this);
  }

  /** Aborts when the model is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /**
   * How long a search waits for the vector of its query: longer in a process that ends after one
   * search, because no later search can use the vector.
   */
  get queryMs(): number {
    return this.#owner.isLongRunning ? QUERY_MS : SINGLE_QUERY_MS;
  }

  /** The limits of the configuration. */
  get limits(): Limits {
    return this.#owner.limits;
  }

  /** Returns the process groups. */
  groups(): ReturnType<GroupsOpener["groups"]> {
    return this.#owner.groups();
  }

  /** Returns the environment of installers. */
  installVariables(): Readonly<Record<string, string>> {
    const { environment } = this.#owner;
    return {
      ...serverEnvironment(environment),
      ...installEnvironment(environment),
      ...this.#owner.proxyVariables(),
    };
  }

  /** Returns the folder of the library. Each start of the child compares the files again. */
  async libraryFor(model: HashedModel): Promise<string> {
    await this.#assertUnchanged(model);
    return await this.#package.ensureInstalled();
  }

  /** Resets the failures, because the model works. */
  onEmbedded(): void {
    this.#failures = 0;
    this.#lastError = undefined;
  }

  /** Logs how many tools have vectors. */
  onIndexed(done: number, total: number): void {
    this.log.info(`Indexed ${done} of ${total} tools`);
    if (done === total) this.#owner.onAllIndexed();
  }

  /**
   * Returns the cosine of each entry for each query; undefined while the model cannot be used.
   * Only a long-running process installs the library, because a short one ends before the
   * installation does.
   */
  async similarities(
    queries: readonly string[],
    entries: readonly CatalogEntry[],
  ): Promise<readonly Float32Array[] | undefined> {
    if (performance.now() < this.#retryAt) return undefined;
    try {
      const { vectors } = await this.#openOnce();
      if (!this.#owner.isLongRunning && !this.#package.isInstalled()) return undefined;
      return await vectors.similarities(queries, entries);
    } catch (error) {
      this.onFailed(error);
      return undefined;
    }
  }

  /** Returns the check for `pml doctor`. Tries the model if its library is installed. */
  async check(entries: readonly CatalogEntry[]): Promise<CheckReport> {
    const { folder } = this;
    try {
      const { vectors, embedder } = await this.#openOnce();
      const note = this.installNote();
      if (note === undefined) await this.#embedSample(embedder);
      const [done, total] = [vectors.count(entries), entries.length];
      const message = note !== undefined
        ? note
        : done < total
        ? `with the built-in model until searches of clients have indexed all tools (${done} of ${total} now), ` +
          `with the model in ${folder}`
        : `hybrid, ${total} tools are indexed with the model in ${folder}`;
      return { name: "search", ok: true, message };
    } catch (error) {
      const { message, hint } = asPmlError(error);
      return {
        name: "search",
        ok: false,
        message: `with the built-in model: ${message}`,
        ...withoutUndefined({ hint }),
      };
    }
  }

  /** Reads the folder of the model. Throws if it is not valid. */
  readModel(): EmbeddingModel {
    return readModel(this.folder);
  }

  /** Returns the library's name and sizes, and whether it is installed. */
  library(): typeof EMBEDDER & { readonly isInstalled: boolean } {
    const { name, downloadBytes, bytes } = EMBEDDER;
    return { name, downloadBytes, bytes, isInstalled: this.#package.isInstalled() };
  }

  /**
   * Returns, for `pml doctor`, when the library will be installed; undefined if it is installed.
   */
  installNote(): string | undefined {
    const { name, downloadBytes, isInstalled } = this.library();
    if (isInstalled) return undefined;
    return `with the built-in model until \`pml search install-model ${
      quoted(this.folder, 400)
    }\`, or a first ` +
      `search of a client, has installed ${name} (${fileSize(downloadBytes)})`;
  }

  /** Installs the library if it is missing. Returns the name of the library. */
  async installLibrary(): Promise<string> {
    await this.#package.ensureInstalled();
    return EMBEDDER.name;
  }

  /** Returns the model as it is now, and whether it differs from its pin. */
  async checkModel(): Promise<CheckedModel> {
    return await this.#pins.check(this.readModel());
  }

  /**
   * Installs the library if it is missing, tries the model, and pins it only if it works. Throws if
   * the model differs from its pin and is not `accepted` by the user.
   */
  async install(report: (message: string) => void, accepted?: CheckedModel): Promise<TrialResult> {
    const model = this.readModel();
    const modelState = accepted ?? await this.checkModel();
    if (accepted === undefined) this.#pins.assertUnchanged(modelState);
    await this.#package.ensureInstalled(report).catch(async (error) => {
      if (!(error instanceof PmlError) || error.code !== "INTEGRITY_MISMATCH") throw error;
      // The user asked for an installation, so changed files are replaced.
      await this.#package.remove();
      await this.#package.ensureInstalled(report);
    });
    // The open model may have been loaded from other files.
    this.#opening = undefined;
    await this.#embedder?.[Symbol.asyncDispose]();
    const opened = this.#open({ model, hash: modelState.hash });
    try {
      await this.#embedSample(opened.embedder);
      // The first embedding also waits for the start.
      const since = performance.now();
      const dimensions = await this.#embedSample(opened.embedder);
      const ms = Math.round(performance.now() - since);
      await this.#pins.accept(modelState);
      this.#opening = Promise.resolve(opened);
      return { dimensions, ms };
    } catch (error) {
      await opened.embedder[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Computes the vectors of tools, and reports how many of them are done. */
  async index(
    entries: readonly CatalogEntry[],
    { report, signal }: {
      readonly report: (done: number, total: number) => void;
      readonly signal: AbortSignal;
    },
  ): Promise<void> {
    signal.throwIfAborted();
    const { vectors } = await this.#openOnce();
    using _ = onAbort(signal, () => this.#closing.abort(signal.reason));
    await vectors.compute(entries, report);
  }

  /** Ends the process of the model. Keeps the vectors that are computed. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(endingError("embed"));
    await this.#embedder?.[Symbol.asyncDispose]();
    const opened = await this.#opening?.catch(() => undefined);
    await opened?.vectors.whenIdle();
  }

  #openOnce(): Promise<OpenModel> {
    this.#opening ??= this.#openPinned().catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #openPinned(): Promise<OpenModel> {
    const model = this.readModel();
    return this.#open({ model, hash: await this.#pins.hashOf(model) });
  }

  #open(hashed: HashedModel): OpenModel {
    const { model, hash } = hashed;
    const embedder = this.#embedder = new Embedder(hashed, this);
    const name = `${basename(model.folder)}-${hash.slice(0, 16)}.bin`;
    const path = join(this.home, "embedder", "vectors", name);
    const vectors = new Vectors({ path, model: hash }, embedder, this);
    return { embedder, vectors };
  }

  async #assertUnchanged({ model, hash }: HashedModel): Promise<void> {
    const current = await this.checkModel();
    if (current.hash === hash && current.folder === model.folder) return;
    // The next search opens the model again, which fails until the user accepts it.
    this.#opening = undefined;
    const message = `Cannot use the model in ${quoted(this.folder, 400)}: its files have changed`;
    throw new PmlError("INTEGRITY_MISMATCH", message, {
      hint: "Accept it with `pml search install-model`, then search again",
    });
  }

  /** Embeds a sentence, and returns the number of its vector's dimensions. */
  async #embedSample(embedder: Embedder): Promise<number> {
    const [vector] = await embedder.embed([SAMPLE], this.#closing.signal);
    if (vector !== undefined) return vector.length;
    const message = `Cannot use the model in ${quoted(this.folder, 400)}: it returns no vector ` +
      `for ${quoted(SAMPLE)}`;
    throw new PmlError("UPSTREAM_PROTOCOL", message, {
      hint: "Install a model that works with `pml search install-model`",
    });
  }

  /** Logs a failure. Search does not use this model until the pause is over. */
  onFailed(error: unknown): void {
    // Every search that waited reports the same failure.
    if (this.#closing.signal.aborted || error === this.#lastError) return;
    this.#lastError = asPmlError(error);
    const wait = Math.min(RETRY_MS * 2 ** this.#failures++, RETRY_MAX_MS);
    this.#retryAt = performance.now() + wait;
    const { message, hint } = this.#lastError;
    const seconds = Math.round(wait / 1_000);
    this.log.warn(
      `Search uses the built-in model for the next ${seconds} s: ${withHint(message, hint)}`,
    );
  }
}
