/**
 * The conditions of `when` in a plan.
 *
 * @module
 */

import { decimalText, numberText } from "../core/exact_number.ts";
import { isObject, type Json } from "../core/json.ts";
import { bad, isList, MissingReference, type Take, withReferences } from "./_refs.ts";

const DEPTH_MAX = 16;
const FORMS = '{"$ref"}, {"exists": {"$ref"}}, {"equals": [a, b]}, {"not": c}, ' +
  '{"and": [c, …]}, {"or": [c, …]}';

/**
 * Returns whether a condition is true. A reference is true if its value exists and is not false,
 * null, 0 or empty. A missing value is not an error.
 */
export function isConditionTrue(condition: Json, take: Take, depth = 0): boolean {
  if (typeof condition === "boolean") return condition;
  if (!isObject(condition) || depth > DEPTH_MAX) throw bad(`\`when\` is not one of ${FORMS}`);
  const [[name, operand] = [], ...others] = Object.entries(condition as Record<string, Json>);
  if (name === undefined || operand === undefined || others.length > 0) {
    throw bad(`\`when\` is not one of ${FORMS}`);
  }
  const value = (one: Json | undefined) => valueOf(one, take);
  const inner = (one: Json) => isConditionTrue(one, take, depth + 1);
  switch (name) {
    case "$ref":
      return isTrue(value({ [name]: operand }));
    case "exists":
      return value(operand) !== undefined;
    case "equals": {
      if (!isList(operand) || operand.length !== 2) throw bad('"equals" takes two values: [a, b]');
      const [one, other] = operand.map(value);
      return one !== undefined && other !== undefined && isSame(one, other);
    }
    case "not":
      return !inner(operand);
    case "and":
    case "or": {
      if (!isList(operand) || operand.length === 0) {
        throw bad(`"${name}" takes a list of conditions`);
      }
      // Evaluates every condition, so that an invalid one is always reported.
      const all = operand.map(inner);
      return name === "and" ? all.every(Boolean) : all.some(Boolean);
    }
    default:
      throw bad(`\`when\` is not one of ${FORMS}`);
  }
}

/** Compares values part by part. Most large values differ early, or are the same object. */
function isSame(one: Json, other: Json): boolean {
  if (one === other) return true;
  const [number, another] = [numberText(one), numberText(other)];
  if (number !== undefined && another !== undefined) {
    return decimalText(number) === decimalText(another);
  }
  if (number !== undefined || another !== undefined) return false;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) {
    return false;
  }
  if (isList(one) !== isList(other)) return false;
  const entries = Object.entries(one);
  return entries.length === Object.keys(other).length &&
    entries.every(([name, value]) =>
      Object.hasOwn(other, name) && isSame(value, (other as Record<string, Json>)[name] ?? null)
    );
}

function valueOf(value: Json | undefined, take: Take): Json | undefined {
  let isMissing = false;
  const result = withReferences(value ?? null, (ref) => {
    try {
      return take(ref);
    } catch (error) {
      // Only a missing value is false. A value that cannot be read is an error.
      // guard: when-too-large
      if (!(error instanceof MissingReference)) throw error;
      isMissing = true;
      return null;
    }
  });
  return isMissing ? undefined : result;
}

function isTrue(value: Json | undefined): boolean {
  const number = numberText(value);
  if (number !== undefined) return decimalText(number) !== "0";
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}
