/**
 * The section `sampling` of `config.yaml`: which model answers when a server asks for one, and how
 * much it may use.
 *
 * @module
 */

import { parsePattern, type Pattern } from "../core/pattern.ts";
import { SAMPLING, type UserConfigValues } from "./settings.ts";

/** The settings of sampling by a provider. */
export interface SamplingSettings {
  /** The format of requests to the model. */
  readonly provider: "anthropic" | "openai";
  /** The name of the model. */
  readonly model: string;
  /** More models; a request may prefer one of them. */
  readonly models: readonly string[];
  /** The address of the provider or of a compatible server. It has no slash at its end. */
  readonly baseUrl: string;
  /** Whether the address is that of a compatible server, and not the provider's. */
  readonly isCompatible: boolean;
  /** The name of the environment variable that contains the key. */
  readonly key: string;
  /**
   * Whether the client or the provider answers if both can. By default the client answers, except
   * for a request with tools of PML: only the provider can call these.
   */
  readonly prefer: "client" | "provider" | undefined;
  /** The maximum number of tokens of all answers to one request. */
  readonly maxTokens: number;
  /** The maximum number of turns in which PML asks the model during one request. */
  readonly maxTurns: number;
  /** The maximum number of requests in a minute. */
  readonly requestsPerMinute: number;
  /** The maximum number of tokens in a day, of the texts that PML sends and of the answers. */
  readonly tokensPerDay: number;
  /** The prices of a million tokens. */
  readonly prices: { readonly input: number; readonly output: number } | undefined;
  /** The maximum cost in a day, in the currency of the prices. */
  readonly moneyPerDay: number | undefined;
  /** The tools that models may use. A model may use no tool that matches none of these patterns. */
  readonly tools: readonly Pattern[];
}

/** The section as the schema checked it. */
export type SamplingSection = NonNullable<UserConfigValues["sampling"]>;

const PROVIDERS = {
  anthropic: { url: "https://api.anthropic.com", key: "ANTHROPIC_API_KEY" },
  openai: { url: "https://api.openai.com/v1", key: "OPENAI_API_KEY" },
} as const;

/** Returns the settings of a section, with defaults. */
export function samplingOf(section: SamplingSection): SamplingSettings {
  const { provider, model, base_url: url, prices } = section;
  const tools = section.allowed_tool_patterns ?? SAMPLING.allowed_tool_patterns.default;
  const defaults = PROVIDERS[provider];
  return {
    provider,
    model,
    models: section.models ?? SAMPLING.models.default,
    baseUrl: (url ?? defaults.url).replace(/\/+$/, ""),
    isCompatible: url !== undefined,
    key: defaults.key,
    prefer: section.prefer,
    maxTokens: section.max_tokens ?? SAMPLING.max_tokens.default,
    maxTurns: section.max_turns ?? SAMPLING.max_turns.default,
    requestsPerMinute: section.requests_per_minute ?? SAMPLING.requests_per_minute.default,
    tokensPerDay: section.tokens_per_day ?? SAMPLING.tokens_per_day.default,
    prices: prices && { input: prices.input_per_million, output: prices.output_per_million },
    moneyPerDay: section.money_per_day,
    tools: tools.map((text) => parsePattern(text)),
  };
}
