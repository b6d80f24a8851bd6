import type { ToolAnnotations } from './tool.ts'

/** Reads without changing anything. */
export const READS: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
}

/** Adds a message; a repeated call adds another one. */
export const ADDS: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: false,
  openWorldHint: false,
}

/** Removes the messages that it returns. */
export const REMOVES: ToolAnnotations = { ...ADDS, destructiveHint: true }

/** Changes the state of messages without removing any; a repeated call has no further effect. */
export const CHANGES: ToolAnnotations = { ...ADDS, idempotentHint: true }

/** Asks a subscriber or an agent for an answer. */
export const ASKS: ToolAnnotations = { ...ADDS, openWorldHint: true }

/** Makes a subscriber or an agent act, possibly with destructive effects. */
export const ACTS: ToolAnnotations = { ...ASKS, destructiveHint: true }
