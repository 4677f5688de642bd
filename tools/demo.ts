/**
 * `deno task demo`: a real MCP client starts the real gateway in a temporary workspace and shows,
 * step by step, how a user works with it.
 *
 * @module
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { encode } from "gpt-tokenizer/encoding/o200k_base";

/** One step of the demonstration. */
interface Step {
  readonly title: string;
  readonly run: (scene: Scene) => Promise<StepResult>;
}

/** The output of a step. */
interface StepResult {
  readonly text: string;
  readonly isExpected: boolean;
}

/** The temporary workspace, its client, and the questions that PML asked the client. */
interface Scene {
  readonly client: Client;
  readonly workspace: string;
  readonly questions: string[];
}

const README = "# Demo\n\nThis file is real, and so is the sandbox that reads it.\n";

const STEPS: readonly Step[] = [
  { title: "The whole list of tools that the model sees", run: listTools },
  { title: "search: find a tool for a task", run: (scene) => call(scene, "search", SEARCH) },
  {
    title: "schema: read the definition of one tool",
    run: (scene) => call(scene, "schema", SCHEMA),
  },
  { title: "call: a sandboxed read of a real file (cold start)", run: readFile },
  { title: "call: the same read again (warm)", run: readFile },
  { title: "call: a write asks the user first; here the answer is Yes", run: writeFile },
  { title: "call: an escape from the workspace is refused", run: escape },
  { title: "batch: several calls at once, one of them wrong", run: batch },
  { title: "execute_workflow: a plan that copies a file, in one request", run: plan },
  { title: "execute_code: the same tools in a few lines of TypeScript", run: code },
];

const SEARCH = { query: "read the first lines of a text file", limit: 3 };
const SCHEMA = { tools: ["filesystem:read_file"] };

if (import.meta.main) Deno.exitCode = await demo();

/** Runs all steps. Returns 0 if each had the expected result. */
async function demo(): Promise<number> {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "pml-demo-" }));
  try {
    const scene = await openScene(folder);
    try {
      return await runSteps(scene);
    } finally {
      await scene.client.close();
    }
  } finally {
    await removeFolder(folder);
  }
}

async function removeFolder(folder: string): Promise<void> {
  try {
    await Deno.remove(folder, { recursive: true });
    say("The temporary folder is removed.");
  } catch (error) {
    if (Deno.build.os !== "windows") throw error;
    // Deno creates a link to itself, `node.exe`, in its cache, and Windows cannot remove a link to a
    // running program.
    say(`${folder} is left: Windows cannot remove it while Deno runs.`);
  }
}

async function openScene(folder: string): Promise<Scene> {
  const workspace = join(folder, "workspace");
  await Deno.mkdir(workspace);
  // On Windows, temporary folders are below a hidden folder, where reading needs approval. A home
  // with this workspace in `workspaces` avoids that.
  await Deno.mkdir(join(folder, "home"));
  const config = `workspaces: ${JSON.stringify([workspace])}\n`;
  await Deno.writeTextFile(join(folder, "home", "config.yaml"), config, { mode: 0o600 });
  await Deno.writeTextFile(`${workspace}/README.md`, README);
  await Deno.writeTextFile(`${folder}/secret.txt`, "out of reach");
  const questions: string[] = [];
  const client = new Client({ name: "demo", version: "1" }, {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: { pin: "2026-07-28" } },
  });
  client.setRequestHandler("elicitation/create", ({ params }) => {
    questions.push(params.message);
    return { action: "accept", content: { answer: "Yes" } };
  });
  const root = fileURLToPath(new URL("../", import.meta.url));
  const since = performance.now();
  await client.connect(
    new StdioClientTransport({
      command: Deno.execPath(),
      args: [
        ...["run", "-A", "--config", join(root, "deno.json")],
        ...[join(root, "mod.ts"), "stdio"],
      ],
      cwd: workspace,
      env: {
        ...Deno.env.toObject(),
        PML_HOME: `${folder}/home`,
        PML_LOG_LEVEL: "error",
        PML_REGISTRIES: "none",
      },
    }),
  );
  say(`pml stdio is up after ${elapsedText(since)}, in ${workspace}`);
  return { client, workspace, questions };
}

async function runSteps(scene: Scene): Promise<number> {
  let failed = 0;
  for (const [at, step] of STEPS.entries()) {
    const since = performance.now();
    const questionCount = scene.questions.length;
    const { text, isExpected } = await step.run(scene);
    const elapsed = elapsedText(since);
    const tokens = encode(text).length;
    say(`\n${at + 1}. ${step.title}`);
    say(`   ${elapsed}, ${tokens} tokens${isExpected ? "" : ", NOT AS EXPECTED"}`);
    for (const question of scene.questions.slice(questionCount)) say(indent(question, "   ? "));
    say(indent(shorten(text), "   | "));
    if (!isExpected) failed++;
  }
  const outcome = failed === 0
    ? "Every step had the expected result."
    : `${failed} steps did not have the expected result.`;
  say(`\n${outcome}`);
  return failed === 0 ? 0 : 1;
}

async function listTools({ client }: Scene): Promise<StepResult> {
  const { tools } = await client.listTools();
  return { text: JSON.stringify(tools), isExpected: tools.length === 6 };
}

async function call(
  scene: Scene,
  name: string,
  args: Record<string, unknown>,
): Promise<StepResult> {
  const result = await scene.client.callTool({ name, arguments: args });
  const { content, isError } = result as {
    content: readonly { readonly text?: string }[];
    isError?: boolean;
  };
  return {
    text: content.map((block) => block.text ?? "").join("\n"),
    isExpected: isError !== true,
  };
}

async function readFile(scene: Scene): Promise<StepResult> {
  const tool = "filesystem:read_file";
  const result = await call(scene, "call", { tool, arguments: { path: "README.md" } });
  return { ...result, isExpected: result.text === README };
}

async function writeFile(scene: Scene): Promise<StepResult> {
  const questionCount = scene.questions.length;
  const result = await call(scene, "call", {
    tool: "filesystem:write_file",
    arguments: { path: "notes.md", content: "Written through the sandbox.\n" },
  });
  const written = await Deno.readTextFile(`${scene.workspace}/notes.md`);
  const isExpected = scene.questions.length === questionCount + 1 &&
    written === "Written through the sandbox.\n";
  return { text: result.text, isExpected: result.isExpected && isExpected };
}

async function escape(scene: Scene): Promise<StepResult> {
  const tool = "filesystem:read_file";
  const { text, isExpected } = await call(scene, "call", {
    tool,
    arguments: { path: "../secret.txt" },
  });
  return { text, isExpected: !isExpected && text.includes("PATH_OUTSIDE_WORKSPACE") };
}

async function batch(scene: Scene): Promise<StepResult> {
  const { text } = await call(scene, "batch", {
    calls: [
      { id: "a", tool: "filesystem:read_file", arguments: { path: "notes.md" } },
      { id: "b", tool: "filesystem:read_file", arguments: { path: "missing.md" } },
      { id: "c", tool: "filesystem:list_directory", arguments: { path: "." } },
    ],
  });
  return {
    text,
    isExpected: [1, 2, 3].every((index) => text.includes(` ${index}/3] filesystem:`)),
  };
}

async function plan(scene: Scene): Promise<StepResult> {
  const questionCount = scene.questions.length;
  const result = await call(scene, "execute_workflow", {
    plan: {
      tasks: [
        { id: "read", tool: "filesystem:read_file", arguments: { path: "README.md" } },
        {
          id: "copy",
          tool: "filesystem:write_file",
          arguments: { path: "copy.md", content: { $ref: "read#" } },
        },
      ],
    },
  });
  const copy = await Deno.readTextFile(`${scene.workspace}/copy.md`);
  const isExpected = scene.questions.length === questionCount + 1 && copy === README;
  return { text: result.text, isExpected: result.isExpected && isExpected };
}

async function code(scene: Scene): Promise<StepResult> {
  const { text, isExpected } = await call(scene, "execute_code", {
    code: `const names = ["README.md", "notes.md", "copy.md"];
const texts = await Promise.all(names.map((path) => mcp.filesystem.read_file({ path })));
texts.map((text, at) => names[at] + " has " + text.length + " characters");`,
  });
  return {
    text,
    isExpected: isExpected && text.includes(`README.md has ${README.length} characters`),
  };
}

function shorten(text: string): string {
  const lines = text.split("\n").map((line) => line.length > 160 ? `${line.slice(0, 160)}…` : line);
  return lines.length > 12 ? [...lines.slice(0, 12), "…"].join("\n") : lines.join("\n");
}

function indent(text: string, prefix: string): string {
  return text.trimEnd().split("\n").map((line) => prefix + line).join("\n");
}

function elapsedText(since: number): string {
  return `${(performance.now() - since).toFixed(1)} ms`;
}

function say(text: string): void {
  console.log(text);
}
