import assert from "node:assert/strict";
import { helpText } from "./_help.ts";
import { makeProgram } from "./_program.ts";

Deno.test("helpText() lists the commands as the library that reads them names them", () => {
  const program = makeProgram(() => Promise.resolve());
  const help = program.createHelp();
  // Nearly every command has options: the word would only make the column wider.
  const termOf = (command: Parameters<typeof help.subcommandTerm>[0]) =>
    help.subcommandTerm(command).replace(" [options]", "");
  const lines = helpText().split("\n");
  for (const command of help.visibleCommands(program)) {
    const line = lines.find((one) => one.startsWith(`  ${termOf(command)}  `));
    assert.ok(line?.endsWith(`  ${command.description()}`), command.name());
  }
  for (const option of help.visibleOptions(program)) {
    const line = lines.find((one) => one.startsWith(`  ${option.flags}  `));
    assert.ok(line?.endsWith(`  ${option.description}`), option.flags);
  }
  const listed = lines.filter((line) => /^ {2}[a-z]/.test(line)).length;
  assert.equal(listed, help.visibleCommands(program).length, "it lists no other commands");
});
