/** The JSON-RPC text of a `tools/call`. */
export function toolCall(name: string, args: Readonly<Record<string, unknown>>, id: number | string = 1): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } })
}

/** The parts of a tool's answer that the harnesses look at. */
export interface ToolResult {
  readonly isError: boolean
  readonly text: string
  readonly structured: Readonly<Record<string, unknown>>
}

interface ToolAnswer {
  readonly error?: { readonly code: number; readonly message: string }
  readonly result?: {
    readonly isError?: boolean
    readonly content?: readonly { readonly text?: string }[]
    readonly structuredContent?: Readonly<Record<string, unknown>>
  }
}

/** Reads the JSON-RPC answer to a `tools/call`; a JSON-RPC error throws. */
export function toolResult(body: string): ToolResult {
  const { error, result } = JSON.parse(body) as ToolAnswer
  if (error !== undefined || result === undefined) throw new Error(`JSON-RPC error: ${body.slice(0, 500)}`)
  return {
    isError: result.isError === true,
    text: result.content?.[0]?.text ?? '',
    structured: result.structuredContent ?? {},
  }
}
