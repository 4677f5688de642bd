/**
 * The tools of the conformance fixture.
 *
 * @module
 */

import { ProtocolError } from "@modelcontextprotocol/server";
import {
  asking,
  content,
  DEFAULTS,
  elicited,
  ENUMS,
  form,
  IMAGE,
  NAME,
  object,
  pause,
  roots,
  sample,
  string,
  text,
  type Tool,
  WAV,
} from "./words.ts";

/** The tools, by their names. */
export const TOOLS: Readonly<Record<string, Tool>> = {
  test_simple_text: {
    does: "Returns a text",
    run: () => content(text("This is a simple text response for testing.")),
  },
  test_image_content: { does: "Returns an image", run: () => content(IMAGE) },
  test_audio_content: {
    does: "Returns a sound",
    run: () => content({ type: "audio", data: WAV, mimeType: "audio/wav" }),
  },
  test_embedded_resource: {
    does: "Returns a resource",
    run: () =>
      content({
        type: "resource",
        resource: {
          uri: "test://embedded-resource",
          mimeType: "text/plain",
          text: "This is an embedded resource content.",
        },
      }),
  },
  test_multiple_content_types: {
    does: "Returns three kinds of content",
    run: () =>
      content(text("Multiple content types test:"), IMAGE, {
        type: "resource",
        resource: {
          uri: "test://mixed-content-resource",
          mimeType: "application/json",
          text: JSON.stringify({ test: "data", value: 123 }),
        },
      }),
  },
  test_tool_with_logging: {
    does: "Sends three log messages",
    run: async ({ context }) => {
      const lines = ["Tool execution started", "Tool processing data", "Tool execution completed"];
      for (const [at, data] of lines.entries()) {
        if (at > 0) await pause(50);
        const params = { level: "info" as const, data };
        await context.mcpReq.notify({ method: "notifications/message", params });
      }
      return content(text("Tool with logging executed successfully"));
    },
  },
  test_tool_with_progress: {
    does: "Reports progress",
    run: async ({ context }) => {
      const { progressToken } = context.mcpReq._meta ?? {};
      for (const progress of [0, 50, 100]) {
        if (progress > 0) await pause(50);
        if (progressToken === undefined) continue;
        const params = { progressToken, progress, total: 100 };
        await context.mcpReq.notify({ method: "notifications/progress", params });
      }
      return content(text("Tool with progress executed successfully"));
    },
  },
  test_error_handling: {
    does: "Fails",
    run: () => ({
      ...content(text("This tool intentionally returns an error for testing")),
      isError: true,
    }),
  },
  test_sampling: {
    does: "Asks a model",
    inputSchema: object({ prompt: string }),
    run: async ({ ask, args }) => {
      const answers = await ask({ one: sample(String(args.prompt), 100) });
      const { text: said = "" } = Object(answers?.one?.content);
      return answers && content(text(`LLM response: ${said}`));
    },
  },
  test_elicitation: {
    does: "Asks the person",
    inputSchema: object({ message: string }),
    run: async ({ ask, args }) => {
      const schema = object({
        username: { type: "string", description: "User's response" },
        email: { type: "string", description: "User's email address" },
      });
      const answers = await ask({ one: form(String(args.message), schema) });
      return answers && content(text(`User response: ${JSON.stringify(answers.one)}`));
    },
  },
  test_elicitation_sep1034_defaults: asking(
    "Asks with defaults",
    { one: form("Please review the values", DEFAULTS) },
    elicited,
  ),
  test_elicitation_sep1330_enums: asking(
    "Asks with choices",
    { one: form("Please choose", ENUMS) },
    elicited,
  ),
  json_schema_2020_12_tool: {
    does: "Tool with JSON Schema 2020-12 features",
    inputSchema: {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: {
          $anchor: "addressDef",
          type: "object",
          properties: { street: string, city: string },
        },
      },
      properties: {
        name: string,
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: string,
        email: string,
      },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false,
    },
    run: ({ args }) => content(text(JSON.stringify(args))),
  },
  test_input_required_result_elicitation: asking(
    "Asks for a name",
    { user_name: NAME },
    ({ user_name }) => `Hello, ${Object(user_name?.content).name}!`,
  ),
  test_input_required_result_sampling: asking(
    "Asks a model a question",
    { capital_question: sample("What is the capital of France?", 100) },
    ({ capital_question }) => String(Object(capital_question?.content).text),
  ),
  test_input_required_result_list_roots: asking(
    "Asks for the roots",
    { client_roots: roots },
    ({ client_roots }) => JSON.stringify(client_roots?.roots),
  ),
  test_input_required_result_request_state: asking(
    "Asks with a state",
    { confirm: form("Please confirm", object({ ok: { type: "boolean" } })) },
    () => "state-ok",
  ),
  test_input_required_result_multiple_inputs: asking(
    "Asks for three things",
    { user_name: NAME, greeting: sample("Generate a greeting", 50), client_roots: roots },
    (answers) => JSON.stringify(answers),
  ),
  test_input_required_result_multi_round: {
    does: "Asks twice",
    run: async ({ ask }) => {
      const first = await ask({
        step1: form("Step 1: What is your name?", object({ name: string })),
      });
      if (first === undefined) return undefined;
      const second = await ask({
        step2: form("Step 2: What is your favorite color?", object({ color: string })),
      });
      return second && content(text(JSON.stringify({ ...first, ...second })));
    },
  },
  test_input_required_result_tampered_state: asking(
    "Asks with a state that cannot be changed",
    { confirm: form("Please confirm", object({ ok: { type: "boolean" } })) },
    () => "confirmed",
  ),
  test_input_required_result_capabilities: {
    does: "Asks for what the client can do",
    run: async ({ ask, able }) => {
      const answers = await ask({
        ..."elicitation" in able && { user_name: NAME },
        ..."sampling" in able && { greeting: sample("Generate a greeting", 50) },
      });
      return answers && content(text(JSON.stringify(answers)));
    },
  },
  test_missing_capability: {
    does: "Needs a client that samples",
    run: ({ able }) => {
      if ("sampling" in able) return content(text("The client samples"));
      throw new ProtocolError(-32021, "The client does not sample", {
        requiredCapabilities: { sampling: {} },
      });
    },
  },
  test_streaming_elicitation: {
    does: "Reports progress, then asks for a name",
    run: async ({ ask, context }) => {
      const { progressToken } = context.mcpReq._meta ?? {};
      if (progressToken !== undefined) {
        const params = { progressToken, progress: 1 };
        await context.mcpReq.notify({ method: "notifications/progress", params });
      }
      const answers = await ask({ user_name: NAME });
      return answers && content(text(JSON.stringify(answers)));
    },
  },
  test_logging_tool: {
    does: "Logs a message",
    run: async ({ context }) => {
      const params = { level: "info" as const, data: "logged" };
      await context.mcpReq.notify({ method: "notifications/message", params });
      return content(text("logged"));
    },
  },
  greet: {
    does: "Greets",
    inputSchema: object({ name: string }),
    run: ({ args }) => content(text(`Hello, ${args.name}!`)),
  },
  test_reconnection: {
    does: "Breaks the stream of the call, and goes on",
    run: async ({ context }) => {
      context.http?.closeSSE?.();
      await pause(100);
      return content(text("Reconnection test completed"));
    },
  },
  test_headers: {
    does: "Marks arguments for headers",
    inputSchema: object({
      region: { ...string, "x-mcp-header": "Region" },
      count: { type: "integer", "x-mcp-header": "Count" },
    }, ["region"]),
    run: ({ args }) => content(text(JSON.stringify(args))),
  },
  test_trigger_tool_change: changing("tools"),
  test_trigger_prompt_change: changing("prompts"),
};

/** Creates a tool that changes a list, and sends its notification. */
function changing(list: "tools" | "prompts"): Tool {
  return {
    does: `Changes the list of ${list}`,
    run: async ({ changed }) => {
      await changed(list);
      return content(text("changed"));
    },
  };
}
