import { isJsonObject } from '@signalbox/http-kit/internal'
import type { JsonObject } from '@signalbox/http-kit'

/** A text that is not empty, or undefined. */
export function nonEmptyText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** The texts of a list that are not empty; undefined if there are none. */
export function nonEmptyTexts(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined
  const texts = value.filter((one): one is string => nonEmptyText(one) !== undefined)
  return texts.length === 0 ? undefined : texts
}

/** The objects of a list. */
export function objectsOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter((one): one is JsonObject => isJsonObject(one)) : []
}

/** Returns an object without the members of these names. */
export function without(object: JsonObject, names: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.has(name)))
}

/** Removes the members whose value is undefined. Members of any name stay, because they may come from an agent. */
export function defined(members: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

/**
 * Removes empty texts, lists and objects, null, and values that JSON cannot represent, at every depth. The
 * SDKs remove them before they verify a card's signature; A2A keeps them. A card without them has one
 * canonical form. `undefined` when nothing remains.
 */
export function withoutEmpty(value: unknown): unknown {
  if (typeof value === 'string') return value === '' ? undefined : value.toWellFormed()
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (typeof value === 'boolean') return value
  if (Array.isArray(value)) {
    const kept = value.map((one) => withoutEmpty(one)).filter((one) => one !== undefined)
    return kept.length === 0 ? undefined : kept
  }
  if (!isJsonObject(value)) return undefined
  const kept = Object.entries(value)
    // The SDKs lose this name: assigning it sets the prototype.
    .filter(([name]) => name !== '__proto__')
    .map(([name, member]): [string, unknown] => [name.toWellFormed(), withoutEmpty(member)])
    .filter(([, member]) => member !== undefined)
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}
