export type JsonObject = { readonly [key: string]: unknown }

/** Whether a value that came out of JSON is an object: no array, and not null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What a text means as JSON, wrapped since that may be any value; undefined when it is not JSON. */
export function readJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}
