import { LONG_TEXT_BYTES, TextParts } from '@signalbox/http-kit'

import type { ToolOutcome } from './tool.ts'

/** Returns the members of an MCP tool result as JSON text. A long text stays in parts, which are escaped later. */
export function resultMembers({ text, hint, isError, structuredContent }: ToolOutcome): string | TextParts {
  const more = hint === undefined ? '' : `,{"type":"text","text":${JSON.stringify(hint)}}`
  const rest = `${more}],"isError":${isError}`
  if (typeof text === 'string' && text.length < LONG_TEXT_BYTES && !(structuredContent instanceof TextParts)) {
    return `"content":[{"type":"text","text":${JSON.stringify(text)}}${rest}${structuredMember(structuredContent)}`
  }
  const parts = new TextParts().add('"content":[{"type":"text","text":').addQuoted(text).add(`}${rest}`)
  return structuredContent instanceof TextParts
    ? parts.add(',"structuredContent":').add(structuredContent)
    : parts.add(structuredMember(structuredContent))
}

function structuredMember(content: object | string | undefined): string {
  if (content === undefined) return ''
  return `,"structuredContent":${typeof content === 'string' ? content : JSON.stringify(content)}`
}
