import assert from "node:assert/strict";
import { parse } from "yaml";
import { META_TOOLS } from "../config/exposure.ts";
import { objectOf, textOf } from "../core/json.ts";
import { skillProblem } from "../protocol/skills.ts";
import { OWN_SKILL, ownSkillAnswer } from "./_own_skill.ts";

Deno.test("the skill of PML is valid, and its frontmatter is that of its file", () => {
  assert.equal(skillProblem(OWN_SKILL), undefined);
  const answer = ownSkillAnswer("resources/read", OWN_SKILL.uri);
  const [content] = answer?.contents as readonly [object];
  const text = textOf(objectOf(content).text);
  const [, head = ""] = text.split("---\n");
  assert.deepEqual(parse(head), OWN_SKILL.frontmatter);
  for (const tool of META_TOOLS) assert.match(text, new RegExp(`\`${tool}\``));
  assert.ok(text.length < 4_000, "a model reads it before its first call");
});

Deno.test("the directory of the skill of PML contains its file", () => {
  const answer = ownSkillAnswer("resources/directory/read", "skill://pml/using-pml");
  const [child] = answer?.resources as readonly [object];
  assert.equal(objectOf(child).uri, OWN_SKILL.uri);
  assert.equal(ownSkillAnswer("resources/read", "skill://pml/using-pml/other"), undefined);
});
