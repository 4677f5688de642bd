/**
 * A server on stdio with the skills of a folder, as the SDK serves them, in either revision. Its tool
 * `reload` reads the folder again.
 *
 *     deno run -A skills_server.ts ERA FOLDER [NO_DIRECTORIES]
 *
 * @module
 */

import { McpServer } from "@modelcontextprotocol/server";
import { type SkillCatalog, SkillsExtension } from "@modelcontextprotocol/server/ext/skills";
import { nodeSkillFiles } from "@modelcontextprotocol/server/ext/skills/node";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

if (import.meta.main) {
  const [era = "legacy", folder = "."] = Deno.args;
  const skills: SkillCatalog = await SkillsExtension.load(nodeSkillFiles(folder));
  const create = () => {
    const server = new McpServer({ name: "skills", version: "1.0.0" }, {
      capabilities: { resources: { listChanged: true } },
    });
    server.registerTool("reload", {}, async () => {
      const { changed } = await skills.reload();
      return { content: [{ type: "text", text: JSON.stringify(changed) }] };
    });
    skills.attach(server);
    return server;
  };
  serveStdio(create, era === "modern" ? { legacy: "reject" } : {});
}
