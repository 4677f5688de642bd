/**
 * Describes the module: its tool, the schemas and permissions.
 *
 * @module
 */

const TEXT = { type: "string" };
const COUNT = { type: "integer", minimum: 0 };

/** Describes the module and its tool. */
export const __meta__ = {
  name: "shell",
  version: "1.0.0",
  description: "Run programs in the workspace, with the person's rights",
  permissions: { read: ["."], run: ["*"] },
  tools: {
    exec: {
      title: "Run a program",
      description:
        "Run a program: its name or absolute path in command, each argument in args. No shell reads " +
        'them; for pipes or globs use command "sh" with args ["-c", "…"]. Ends with all it started',
      inputSchema: {
        type: "object",
        properties: {
          command: {
            ...TEXT,
            minLength: 1,
            // A name on PATH has no space: a space shows that arguments follow.
            pattern: "^(?:\\S+|/.*|[A-Za-z]:[\\\\/].*)$",
            description: 'A program on PATH, or its absolute path. Arguments go into args: ["-la"]',
          },
          args: { type: "array", items: TEXT, default: [] },
          cwd: { ...TEXT, default: ".", description: "A folder of the workspace" },
          stdin: { ...TEXT, description: "The text for its standard input" },
          env: {
            type: "object",
            additionalProperties: TEXT,
            description: "Variables in addition to PATH, HOME, LANG, TERM and TZ",
          },
          timeout_ms: { type: "integer", minimum: 1, description: "Kill it after so long" },
          max_bytes: {
            type: "integer",
            minimum: 1_000,
            maximum: 16_777_216,
            default: 100_000,
            description: "How much of each output is kept: its head and its tail",
          },
        },
        required: ["command"],
        additionalProperties: false,
      },
      outputSchema: {
        type: "object",
        properties: {
          code: { type: "integer", description: "128 and more where a signal ended it" },
          signal: { type: ["string", "null"] },
          stdout: TEXT,
          stderr: TEXT,
          stdout_omitted: { ...COUNT, description: "Bytes left out of its middle" },
          stderr_omitted: COUNT,
          timed_out: { type: "boolean" },
          duration_ms: COUNT,
        },
        required: ["code", "signal", "stdout", "stderr", "timed_out", "duration_ms"],
      },
      annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
    },
  },
};
