/**
 * The clients: their packages, their configuration for a model on 127.0.0.1, and the arguments of a
 * run without a terminal.
 *
 * @module
 */

import type { ClientName } from "../../src/config/clients.ts";
import type { ToolName } from "./apis.ts";

/** The addresses and folders of a client. */
export interface Place {
  /** The address of the model, without a slash at its end. */
  readonly model: string;
  readonly home: string;
  readonly workspace: string;
}

/** A client from npm. */
export interface RealClient {
  readonly name: ClientName;
  /** Its name on the page of clients. */
  readonly title: string;
  readonly npm: string;
  readonly version: string;
  readonly bin: string;
  /** Whether `pml init` writes the user's own file instead of the project's. */
  readonly isOwn: boolean;
  /** Returns its name of a tool of PML. */
  readonly toolName: (tool: string) => ToolName;
  readonly env: (place: Place) => Readonly<Record<string, string>>;
  /** Its files before `pml init`: absolute path to text or JSON. */
  readonly files: (place: Place) => Readonly<Record<string, unknown>>;
  /** The arguments of a run that comes first and configures the model. */
  readonly before?: (place: Place) => readonly string[];
  /** The arguments of a run without a terminal. */
  readonly args: (prompt: string) => readonly string[];
}

const GOOGLE_SETTINGS = {
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
  general: { disableAutoUpdate: true, disableUpdateNag: true, enableAutoUpdate: false },
};

const codex: RealClient = {
  name: "codex",
  title: "Codex",
  npm: "@openai/codex",
  version: "0.171.0",
  bin: "codex",
  isOwn: true,
  toolName: (name) => ({ namespace: "mcp__pml", name }),
  env: ({ home }) => ({ CODEX_HOME: `${home}/.codex`, MODEL_KEY: "dummy" }),
  files: ({ model, home, workspace }) => ({
    [`${home}/.codex/config.toml`]: `
model = "gpt-5-codex"
model_provider = "local"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.local]
name = "local"
base_url = "${model}/v1"
wire_api = "responses"
env_key = "MODEL_KEY"

[projects."${workspace}"]
trust_level = "trusted"
`,
  }),
  args: (prompt) => [
    ...["exec", "--skip-git-repo-check", "--json"],
    ...["-c", "mcp_servers.pml.default_tools_approval_mode=approve"],
    // Its 10 seconds are too few for PML from the repository on a busy machine.
    ...["-c", "mcp_servers.pml.startup_timeout_sec=120"],
    prompt,
  ],
};

const gemini: RealClient = {
  name: "gemini",
  title: "Gemini CLI",
  npm: "@google/gemini-cli",
  version: "0.61.0",
  bin: "gemini",
  isOwn: false,
  toolName: (name) => ({ name: `mcp_pml_${name}` }),
  env: ({ model }) => ({
    GOOGLE_GEMINI_BASE_URL: model,
    GEMINI_API_KEY: "dummy",
    GEMINI_MODEL: "gemini-2.5-pro",
    GEMINI_TELEMETRY_ENABLED: "false",
  }),
  files: ({ home }) => ({
    [`${home}/.gemini/settings.json`]: {
      ...GOOGLE_SETTINGS,
      security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
      ide: { enabled: false, hasSeenNudge: true },
    },
  }),
  args: (prompt) => ["-p", prompt, "--approval-mode", "yolo", "--output-format", "stream-json"],
};

const claudeCode: RealClient = {
  name: "claude-code",
  title: "Claude Code",
  npm: "@anthropic-ai/claude-code",
  version: "2.1.197",
  bin: "claude",
  isOwn: false,
  toolName: (name) => ({ name: `mcp__pml__${name}` }),
  env: ({ model }) => ({
    ANTHROPIC_BASE_URL: model,
    ANTHROPIC_API_KEY: "dummy",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    DISABLE_ERROR_REPORTING: "1",
    DISABLE_TELEMETRY: "1",
  }),
  files: ({ home, workspace }) => ({
    [`${home}/.claude.json`]: {
      hasCompletedOnboarding: true,
      customApiKeyResponses: { approved: ["dummy"], rejected: [] },
      projects: {
        [workspace]: { hasTrustDialogAccepted: true, enabledMcpjsonServers: ["pml"] },
      },
    },
    [`${workspace}/.claude/settings.local.json`]: { enabledMcpjsonServers: ["pml"] },
  }),
  args: (prompt) => [
    ...["-p", prompt, "--allowedTools", "mcp__pml"],
    ...["--output-format", "stream-json", "--verbose"],
  ],
};

const opencode: RealClient = {
  name: "opencode",
  title: "opencode",
  npm: "opencode-ai",
  version: "1.18.33",
  bin: "opencode",
  isOwn: false,
  toolName: (name) => ({ name: `pml_${name}` }),
  env: ({ home }) => ({
    OPENCODE_CONFIG: `${home}/base.json`,
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
    OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
  }),
  files: ({ model, home }) => ({
    [`${home}/base.json`]: {
      ...{ share: "disabled", autoupdate: false },
      ...{ model: "local/stand-in", small_model: "local/stand-in" },
      provider: {
        local: {
          npm: "@ai-sdk/openai-compatible",
          name: "local",
          options: { baseURL: `${model}/v1`, apiKey: "dummy" },
          models: {
            "stand-in": {
              name: "stand-in",
              tool_call: true,
              limit: { context: 200_000, output: 8_000 },
            },
          },
        },
      },
    },
  }),
  args: (prompt) => ["run", "--format", "json", prompt],
};

const qwen: RealClient = {
  name: "qwen",
  title: "Qwen Code",
  npm: "@qwen-code/qwen-code",
  version: "0.15.10",
  bin: "qwen",
  isOwn: false,
  toolName: (name) => ({ name: `mcp__pml__${name}` }),
  env: ({ model }) => ({
    OPENAI_BASE_URL: `${model}/v1`,
    OPENAI_API_KEY: "dummy",
    OPENAI_MODEL: "stand-in",
  }),
  files: ({ home }) => ({
    [`${home}/.qwen/settings.json`]: {
      ...GOOGLE_SETTINGS,
      $version: 3,
      security: { auth: { selectedType: "openai" }, folderTrust: { enabled: false } },
      model: { name: "stand-in" },
    },
  }),
  args: (prompt) => [
    ...["-p", prompt, "--yolo", "--auth-type", "openai", "--output-format", "stream-json"],
  ],
};

const copilot: RealClient = {
  name: "copilot",
  title: "Copilot CLI",
  npm: "@github/copilot",
  version: "1.0.102",
  bin: "copilot",
  isOwn: true,
  toolName: (name) => ({ name: `pml-${name}` }),
  env: ({ model }) => ({
    COPILOT_PROVIDER_BASE_URL: `${model}/v1`,
    COPILOT_PROVIDER_API_KEY: "dummy",
    COPILOT_MODEL: "stand-in",
    COPILOT_OFFLINE: "true",
    COPILOT_AUTO_UPDATE: "false",
  }),
  files: ({ home, workspace }) => ({
    [`${home}/.copilot/config.json`]: { trusted_folders: [workspace], banner: "never" },
  }),
  args: (prompt) => ["-p", prompt, "--allow-tool", "pml", "--output-format", "json"],
};

const continueCli: RealClient = {
  name: "continue",
  title: "Continue",
  npm: "@continuedev/cli",
  version: "1.5.47",
  bin: "cn",
  isOwn: true,
  toolName: (name) => ({ name }),
  env: ({ home }) => ({
    CONTINUE_GLOBAL_DIR: `${home}/.continue`,
    CONTINUE_METRICS_ENABLED: "0",
    CONTINUE_TELEMETRY_ENABLED: "0",
  }),
  files: ({ model, home }) => ({
    [`${home}/.continue/config.yaml`]: `name: Local
version: 1.0.0
schema: v1
models:
  - name: stand-in
    provider: openai
    model: stand-in
    apiKey: dummy
    apiBase: ${model}/v1
    roles: [chat]
    capabilities: [tool_use]
`,
  }),
  args: (prompt) => ["--auto", "-p", prompt],
};

const MODEL_OF_CLINE = ["-P", "openai-compatible", "-m", "stand-in"];

const cline: RealClient = {
  name: "cline",
  title: "Cline",
  npm: "cline",
  version: "3.0.65",
  bin: "cline",
  isOwn: true,
  toolName: (name) => ({ name: `pml__${name}` }),
  env: () => ({ CLINE_NO_AUTO_UPDATE: "1", CLINE_TELEMETRY_DISABLED: "1" }),
  files: () => ({}),
  before: ({ model }) => [
    ...["auth", "-p", "openai-compatible", "-k", "dummy", "-m", "stand-in", "-b", `${model}/v1`],
  ],
  args: (prompt) => ["--json", ...MODEL_OF_CLINE, prompt],
};

/** The clients of the page. */
export const REAL_CLIENTS: readonly RealClient[] = [
  claudeCode,
  codex,
  gemini,
  opencode,
  qwen,
  copilot,
  continueCli,
  cline,
];

/** The clients with open sources, which the tests run. */
export const OPEN_CLIENTS: readonly RealClient[] = [codex, gemini];
