/**
 * The setup of the sampling tests: a fake provider on loopback, and a `Sampling` that uses it.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { FakeProvider, type Format, type Reply } from "../../tests/kit/fake_provider.ts";
import { Redactor } from "../audit/redact.ts";
import { samplingOf, type SamplingSection, type SamplingSettings } from "../config/sampling.ts";
import type { ToolResult } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import type { JsonObject } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";
import { GuardedFetch } from "../transport/http/client/guarded_fetch.ts";
import {
  type RunnableTool,
  type SampledEvent,
  Sampling,
  type SamplingRequest,
} from "./sampling.ts";

/** The replies of the provider, and the settings and tools of the user. */
export interface SceneOptions {
  readonly format?: Format;
  readonly replies?: readonly Reply[];
  readonly settings?: Partial<SamplingSection>;
  readonly tools?: readonly RunnableTool[];
  readonly run?: (id: ToolId, args: JsonObject) => Promise<ToolResult>;
}

/** The key of the scene. */
export const KEY = "sk-secret-of-the-scene";
/** The default request. */
export const ASKED: JsonObject = {
  messages: [{ role: "user", content: { type: "text", text: "Say it" } }],
  maxTokens: 100,
};

/** A request whose events and progress the scene records. */
export class SceneRequest implements SamplingRequest {
  readonly key = KEY;
  readonly settings: SamplingSettings;
  readonly signal: AbortSignal;
  readonly #scene: Scene;
  readonly #options: SceneOptions;

  constructor(
    scene: Scene,
    options: SceneOptions,
    { signal = new AbortController().signal, settings = scene.settings }: {
      readonly signal?: AbortSignal | undefined;
      readonly settings?: SamplingSettings;
    } = {},
  ) {
    this.settings = settings;
    this.signal = signal;
    this.#scene = scene;
    this.#options = options;
  }

  assertCurrent(): void {}

  tools(): Promise<readonly RunnableTool[]> {
    return Promise.resolve(this.#options.tools ?? []);
  }

  run(id: ToolId, args: JsonObject): Promise<ToolResult> {
    return this.#options.run?.(id, args) ?? Promise.resolve({ content: [] });
  }

  report(message: string): void {
    this.#scene.progress.push(message);
  }

  record(event: SampledEvent): void {
    this.#scene.events.push(event);
  }
}

/** A fake provider, and a `Sampling` that sends requests to it. */
export class Scene implements AsyncDisposable {
  readonly provider: FakeProvider;
  readonly sampling: Sampling;
  readonly settings: SamplingSettings;
  readonly home: string;
  readonly events: SampledEvent[] = [];
  readonly progress: string[] = [];
  readonly #network = new GuardedFetch();
  readonly #options: SceneOptions;

  /** Starts the provider. */
  constructor(options: SceneOptions = {}) {
    const { format = "anthropic", replies = [{ text: "it" }], settings = {} } = options;
    this.#options = options;
    this.provider = new FakeProvider(format, ...replies);
    this.home = Deno.makeTempDirSync({ prefix: "pml-sampling-" });
    this.settings = samplingOf({
      provider: format,
      model: "m-1",
      base_url: this.provider.url,
      ...settings,
    });
    const redactor = new Redactor();
    redactor.register(KEY);
    this.sampling = new Sampling(this.home, this.#network.fetch, redactor);
  }

  /** The path of the budget's file. */
  get file(): string {
    return join(this.home, "sampling.json");
  }

  /** Sends a request and returns the answer. */
  async ask(params: JsonObject = {}, signal?: AbortSignal): Promise<JsonObject> {
    const prompt = this.sampling.parse({ ...ASKED, ...params });
    return await this.sampling.answer(prompt, new SceneRequest(this, this.#options, { signal }));
  }

  /** Sends a request and returns its error. */
  async error(params: JsonObject = {}): Promise<PmlError> {
    try {
      await this.ask(params);
    } catch (error) {
      if (error instanceof PmlError) return error;
      throw error;
    }
    assert.fail("it answered");
  }

  /** Stops the provider. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#network[Symbol.dispose]();
    await this.provider[Symbol.asyncDispose]();
    await Deno.remove(this.home, { recursive: true });
  }
}
