import { signedOut, token } from '../session/token.ts'
import type { PostBody } from './client.ts'
import { ApiError, noAnswer, post, routeUrl, send } from './client.ts'

/** One of the events that a stream sends. */
export interface StreamEvent {
  readonly name: string
  readonly data: unknown
  /** The time of its arrival, ISO 8601. */
  readonly time: string
}

interface Failure {
  readonly error_string: string
  readonly data: { readonly code: string } | null
}

/**
 * Calls an agent, and reports its events as they come. Resolves at the end of the stream. Rejects with an
 * {@link ApiError}, or with the signal's reason.
 */
export async function callAgent(
  body: PostBody<'/api/actions/call_agent'>,
  signal: AbortSignal,
  onEvent: (event: StreamEvent) => void,
): Promise<void> {
  const bearer = token.value
  const response = await send(routeUrl('/api/actions/call_agent'), post(body, signal), bearer).catch(
    (cause: unknown) => {
      throw noAnswer(cause, signal)
    },
  )
  if (response.status === 401) signedOut.set(true)
  if (response.body === null || response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
    const { error_string: text, data }: Failure = await response.json()
    throw new ApiError(data?.code ?? 'NOT_READY', text, response.status)
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read().catch((cause: unknown) => {
      throw noAnswer(cause, signal, 'The connection was lost.')
    })
    if (done) return
    text += value.replaceAll('\r\n', '\n')
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const event = eventOf(block)
      if (event !== undefined) onEvent(event)
    }
  }
}

/** Returns the event of a block of lines; undefined for a comment. */
function eventOf(block: string): StreamEvent | undefined {
  let name = 'message'
  const data: string[] = []
  for (const line of block.split('\n')) {
    if (line.startsWith('event:')) name = line.slice(6).trim()
    else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
  }
  return data.length === 0 ? undefined : { name, data: jsonOf(data.join('\n')), time: new Date().toISOString() }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
