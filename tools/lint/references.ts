/**
 * Distinguishes the use of a global from a property, a type or a local variable with the same name.
 *
 * @module
 */

type Node = Deno.lint.Node;

/** The parent nodes of names that are declarations or types, not uses of a value. */
const NOT_A_USE = new Set([
  "TSTypeReference",
  "TSTypeQuery",
  "TSQualifiedName",
  "TSPropertySignature",
  "TSMethodSignature",
  "TSParameterProperty",
  "TSInterfaceHeritage",
  "ImportSpecifier",
  "ImportDefaultSpecifier",
  "ImportNamespaceSpecifier",
  "ExportSpecifier",
  "FunctionDeclaration",
  "FunctionExpression",
  "ClassDeclaration",
  "LabeledStatement",
]);

/** Returns whether an identifier is read as a value. */
export function isReference(node: Deno.lint.Identifier): boolean {
  const parent = node.parent as Node;
  if (NOT_A_USE.has(parent.type)) return false;
  switch (parent.type) {
    case "MemberExpression":
      return parent.computed || parent.object === node;
    case "Property":
      return parent.value === node && parent.parent.type !== "ObjectPattern";
    case "MethodDefinition":
    case "PropertyDefinition":
      return parent.computed || parent.value === node;
    case "VariableDeclarator":
      return parent.init === node;
    default:
      return true;
  }
}

/** Returns the name of an accessed member; undefined if the name is computed. */
export function memberName(node: Deno.lint.MemberExpression): string | undefined {
  const { property } = node;
  if (property.type === "Identifier" && !node.computed) return property.name;
  return property.type === "Literal" && typeof property.value === "string"
    ? property.value
    : undefined;
}

/** Returns whether an enclosing scope declares a name: a parameter, a variable or an import. */
export function isShadowed(ancestors: readonly Node[], name: string): boolean {
  return ancestors.some((scope) => declaredIn(scope).includes(name));
}

function declaredIn(scope: Node): string[] {
  switch (scope.type) {
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ArrowFunctionExpression":
      return scope.params.flatMap(boundNames);
    case "BlockStatement":
    case "Program":
      return scope.body.flatMap(declaredBy);
    case "CatchClause":
      return scope.param === null ? [] : boundNames(scope.param);
    case "ForOfStatement":
      return declaredBy(scope.left);
    default:
      return [];
  }
}

function declaredBy(statement: Node): string[] {
  switch (statement.type) {
    case "VariableDeclaration":
      return statement.declarations.flatMap((declarator) => boundNames(declarator.id));
    case "FunctionDeclaration":
    case "ClassDeclaration":
      return statement.id === null ? [] : [statement.id.name];
    case "ImportDeclaration":
      return statement.specifiers.map((specifier) => specifier.local.name);
    case "ExportNamedDeclaration":
      return statement.declaration === null ? [] : declaredBy(statement.declaration);
    default:
      return [];
  }
}

function boundNames(pattern: Node | Deno.lint.Parameter): string[] {
  switch (pattern.type) {
    case "Identifier":
      return [pattern.name];
    case "AssignmentPattern":
      return boundNames(pattern.left);
    case "RestElement":
      return boundNames(pattern.argument);
    case "TSParameterProperty":
      return boundNames(pattern.parameter);
    case "ObjectPattern":
      return pattern.properties.flatMap((property) =>
        boundNames(property.type === "Property" ? property.value : property)
      );
    case "ArrayPattern":
      return pattern.elements.flatMap((item) => item === null ? [] : boundNames(item));
    default:
      return [];
  }
}
