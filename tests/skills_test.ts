/**
 * Skills of servers behind PML, which the SDK serves and reads: over stdio and HTTP, of both
 * revisions, with every exposure.
 *
 * @module
 */

import assert from "node:assert/strict";
import { SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { read } from "./attacks/questions.ts";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { connect } from "./kit/client.ts";
import { type Era, ERAS } from "./kit/json_rpc.ts";
import { denoServer } from "./kit/pml_command.ts";
import { servePml } from "./kit/pml_serve.ts";
import { until } from "./kit/wait.ts";
import { runPmlOnTerminal } from "./kit/run.ts";
import { type Workspace, writeFiles } from "./kit/workspace.ts";

const EXPOSURES = ["direct", "full_proxy", "meta_only"] as const;
const KINDS = { legacy: "legacy", modern: "modern" } as const;

/** Returns the files of a skill in a folder. */
function skill(
  folder: string,
  name: string,
  body = "Read references/GUIDE.md",
): Record<string, string> {
  const head =
    `---\nname: ${name}\ndescription: Says ${name} — “plainly”\nmetadata:\n  a: "1"\n---\n`;
  return {
    [`${folder}/${name}/SKILL.md`]: `${head}${body}\n`,
    [`${folder}/${name}/references/GUIDE.md`]: `# Guide of ${folder}\r\n`,
    [`${folder}/${name}/references/deep/Q&A é.md`]: "deep",
  };
}

const FILES = {
  ...skill("one", "shared", "of one"),
  ...skill("one", "git-flow"),
  ...skill("two", "shared", "of two"),
};

function serverOf(folder: string, kind: keyof typeof KINDS = "legacy") {
  return denoServer("tests/kit/skills_server.ts", kind, `./${folder}`);
}

/** Returns a configuration of two servers of a revision, or of one server of each. */
function configOf(kind: keyof typeof KINDS | "both", exposure: string = "meta_only") {
  const [first, second] = kind === "both" ? ["modern", "legacy"] as const : [kind, kind];
  return {
    version: 1,
    gateway: { tools_exposure: exposure },
    permissions: { allow: ["one:*", "two:*"] },
    mcpServers: { one: serverOf("one", first), two: serverOf("two", second) },
  };
}

async function assertSkills(client: ConstructorParameters<typeof SkillsClient>[0]): Promise<void> {
  const skills = new SkillsClient(client);
  assert.deepEqual([skills.supported, skills.directoryRead], [true, true]);
  const { skills: all } = await skills.list();
  const uris = all.map(({ uri }) => uri).filter((uri) => !uri.startsWith("skill://pml/"));
  assert.deepEqual(uris, [
    "skill://one/git-flow/SKILL.md",
    "skill://one/shared/SKILL.md",
    "skill://two/shared/SKILL.md",
  ]);
  for (const entry of all) {
    assert.ok(Array.isArray(entry.resources));
    // The client compares the digest, the size and the frontmatter.
    for (const { uri } of entry.resources) {
      const { verified } = await skills.read(entry, uri);
      assert.equal(verified, true, uri);
    }
    const { skill } = await skills.get(entry.uri);
    assert.deepEqual(skill, entry);
  }
  const [, one, two] = all.filter(({ uri }) => uris.includes(uri));
  assert.ok(one !== undefined && two !== undefined);
  assert.match((await skills.read(one)).body ?? "", /of one/);
  assert.match((await skills.read(two)).body ?? "", /of two/);
  const own = await skills.readDirectory("skill://pml/using-pml");
  assert.deepEqual(own.resources.map(({ uri }) => uri), ["skill://pml/using-pml/SKILL.md"]);
  for (const server of ["one", "two"]) {
    const root = await skills.readDirectory(`skill://${server}/shared`);
    assert.deepEqual(root.resources.map(({ uri, mimeType }) => [uri, mimeType]), [
      [`skill://${server}/shared/SKILL.md`, "text/markdown"],
      [`skill://${server}/shared/references`, "inode/directory"],
    ]);
  }
}

for (const era of ERAS) {
  for (const exposure of EXPOSURES) {
    Deno.test(`skills of servers of both revisions are read with ${exposure}, on ${era}`, async () => {
      await using ws = await makeAttackWorkspace({
        files: FILES,
        pml: configOf("both", exposure),
        limits: { first_list_ms: 60_000 },
      });
      await using connection = await connect(ws, { era });
      await listed(connection.client);
      await assertSkills(connection.client);
    });
  }

  Deno.test(`skills of servers of both revisions are read through pml serve, on ${era}`, async () => {
    await using ws = await makeAttackWorkspace({
      files: FILES,
      pml: configOf("both"),
      limits: { first_list_ms: 60_000 },
    });
    await using served = await servePml(ws);
    await using connection = await served.connect({ era: era as Era });
    await listed(connection.client);
    await assertSkills(connection.client);
  });
}

/** Waits until the servers are started: a list does not wait for them. */
async function listed(client: ConstructorParameters<typeof SkillsClient>[0]): Promise<void> {
  for (const uri of ["skill://one/shared/SKILL.md", "skill://two/shared/SKILL.md"]) {
    await new SkillsClient(client).get(uri);
  }
}

Deno.test("a changed skill asks with its difference, and is shown as approved until then", async () => {
  const questions: string[] = [];
  let reply = "No";
  await using ws = await makeAttackWorkspace({
    files: FILES,
    pml: configOf("legacy", "full_proxy"),
    limits: { first_list_ms: 60_000 },
  });
  await using connection = await connect(ws, {
    elicit: async ({ message }) => {
      questions.push(message);
      await read();
      return { action: "accept", content: { answer: reply } };
    },
  });
  const { client } = connection;
  await listed(client);
  const skills = new SkillsClient(client);
  const uri = "skill://one/shared/SKILL.md";
  const { skill: before } = await skills.get(uri);
  await skills.read(before, "references/GUIDE.md");
  assert.deepEqual(questions, []);
  // The SDK reports no change, because name and description are the same.
  await writeFiles(ws.path, { "one/shared/references/GUIDE.md": "Changed\n" });
  await client.callTool({ name: "one__reload", arguments: {} });
  await assert.rejects(skills.get(uri), /the user answered no/);
  assert.match(questions[0] ?? "", /The skill "skill:\/\/shared\/SKILL.md" of "one" has changed/);
  assert.match(questions[0] ?? "", /file "skill:\/\/shared\/references\/GUIDE.md" was: .*sha256:/);
  const entryOf = async () => {
    const { skills: all } = await skills.list();
    return all.find((one) => one.uri === uri);
  };
  assert.deepEqual(await entryOf(), before);
  await assert.rejects(skills.read(before, "references/GUIDE.md"), /the user answered no/);
  // The other skills of the server do not ask.
  const { skill: other } = await skills.get("skill://one/git-flow/SKILL.md");
  assert.equal((await skills.read(other)).verified, true);
  reply = "Yes";
  const { skill: after } = await skills.get(uri);
  assert.notDeepEqual(after, before);
  assert.equal((await skills.read(after, "references/GUIDE.md")).text, "Changed\n");
  await until(async () => JSON.stringify(await entryOf()) === JSON.stringify(after));
  assert.equal(questions.length, 3);
});

Deno.test("pml lock update shows and approves a changed skill", async () => {
  await using ws = await makeAttackWorkspace({ files: FILES, pml: configOf("modern") });
  const { read } = readers(ws);
  await read();
  await writeFiles(ws.path, skill("one", "shared", "changed"));
  await Deno.remove(`${ws.home}/lists`, { recursive: true });
  const result = await runPmlOnTerminal(ws, ["lock", "update", "one"], {
    typed: [[/Type "pin"/, "pin"]],
  });
  assert.match(result.stdout, /The skill "skill:\/\/shared\/SKILL.md" of "one" has changed/);
  assert.equal(result.code, 0, result.stdout);
  await read();
});

/** Returns a function that reads a skill in a new process that cannot ask. */
function readers(ws: Workspace) {
  return {
    read: async () => {
      await using connection = await connect(ws, {});
      const skills = new SkillsClient(connection.client);
      const { skill } = await skills.get("skill://one/shared/SKILL.md");
      await skills.read(skill);
    },
  };
}

Deno.test("the skills of a removed server are gone from the next list", async () => {
  await using ws = await makeAttackWorkspace({
    files: FILES,
    pml: configOf("modern"),
    limits: { first_list_ms: 60_000 },
  });
  await using connection = await connect(ws, {});
  const { client } = connection;
  await listed(client);
  const skills = new SkillsClient(client);
  const { one } = configOf("modern").mcpServers;
  await writeFiles(ws.path, {
    ".pml.json": JSON.stringify({ ...configOf("modern"), mcpServers: { one } }),
  });
  const uris = async () => (await skills.list()).skills.map(({ uri }) => uri);
  await until(async () => !(await uris()).includes("skill://two/shared/SKILL.md"));
  assert.equal((await uris()).includes("skill://one/shared/SKILL.md"), true);
  await assert.rejects(skills.get("skill://two/shared/SKILL.md"), /Cannot find the resource/);
  // Only one server has this address now.
  assert.equal((await skills.get("skill://shared/SKILL.md")).skill.uri, "skill://shared/SKILL.md");
});
