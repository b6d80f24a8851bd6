import type { ToolAnnotations } from './tool.ts'

/** Looks, and changes nothing. */
export const READS: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
}

/** Adds a message; a second call adds a second one. */
export const ADDS: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: false,
}

/** Removes what it returns. */
export const REMOVES: ToolAnnotations = { ...ADDS, destructiveHint: true }

/** Asks somebody outside the broker for an answer. */
export const ASKS: ToolAnnotations = { ...ADDS, openWorldHint: true }

/** Has somebody outside the broker do something, which may be anything. */
export const ACTS: ToolAnnotations = { ...ASKS, destructiveHint: true }
