/**
 * A small MCP server of both revisions for the tests of the kit: it echoes, and asks the user.
 *
 * @module
 */

import { inputRequired, inputResponse, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const TOOLS = ["echo", "ask"].map((name) => ({ name, inputSchema: { type: "object" as const } }));
const QUESTION = {
  type: "object" as const,
  properties: { answer: { type: "string" as const, enum: ["Yes", "No"] } },
  required: ["answer"],
};

/** Creates the server. */
function makeServer(): Server {
  const server = new Server({ name: "echo", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({ tools: TOOLS }));
  server.setRequestHandler("tools/call", ({ params }, context) => {
    const text = (said: unknown) => ({
      content: [{ type: "text" as const, text: JSON.stringify(said) }],
    });
    if (params.name === "echo") return text(params.arguments);
    const reply = inputResponse(context.mcpReq.inputResponses, "sure");
    if (reply.kind !== "missing") return text(reply);
    return inputRequired({
      inputRequests: {
        sure: inputRequired.elicit({ message: "Sure?", requestedSchema: QUESTION }),
      },
    });
  });
  return server;
}

/** Starts the server on the pipes of this process. */
export function serve(): void {
  serveStdio(makeServer);
}

if (import.meta.main) serve();
