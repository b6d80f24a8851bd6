import type { ToolOutcome } from './tool.ts'

/** Returns the members of an MCP tool result as JSON text. */
export function resultMembers({ text, isError, structuredContent }: ToolOutcome): string {
  const json = typeof structuredContent === 'string' ? structuredContent : JSON.stringify(structuredContent)
  const structured = structuredContent === undefined ? '' : `,"structuredContent":${json}`
  return `"content":[{"type":"text","text":${JSON.stringify(text)}}],"isError":${isError}${structured}`
}
