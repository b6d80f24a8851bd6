import type { HttpHandler } from '../http-message.ts'
import { bytesOf } from '../kept-body.ts'
import { FetchConnection } from './fetch-connection.ts'
import { FetchRequest } from './fetch-request.ts'
import { FetchResponse } from './fetch-response.ts'

/** Facts about a fetch request that only its host knows. */
export interface FetchContext {
  /** The client's address. Limits count anonymous callers by it. @default all anonymous callers count as one */
  readonly clientAddress?: string | undefined
  /** The body, if the host has read it: the text, the bytes, or the parsed JSON. @default the body of the request */
  readonly body?: unknown
}

/**
 * Answers a fetch request with a handler. The answer has its body as a stream. Aborting the request's signal, and
 * canceling the body of the answer, is the same as a client that disconnects.
 * @throws TypeError for a value that is not a Request, and for a request whose body was read and is not in the context
 */
export async function serveFetch(
  handler: HttpHandler,
  request: Request,
  context: FetchContext = {},
): Promise<Response> {
  if (!isRequest(request)) {
    throw new TypeError('the fetch handler takes a Request of the Fetch API; for requests of node:http use `handler`')
  }
  // Hosts pass their own second argument if the handler is registered without a function around it.
  const { clientAddress, body }: { readonly clientAddress?: unknown; readonly body?: unknown } = Object(context)
  if (request.bodyUsed && body === undefined) {
    throw new TypeError(
      'the body of the request was read before the fetch handler; pass it as the second argument: { body }',
    )
  }
  const url = new URL(request.url)
  const connection = new FetchConnection(url, typeof clientAddress === 'string' ? clientAddress : undefined)
  const incoming = new FetchRequest(request, url, connection, body === undefined ? undefined : bytesOf(body))
  const response = new FetchResponse(request.method, connection)
  const { signal } = request
  const lose = (): void => connection.lose()
  connection.once('close', () => {
    signal.removeEventListener('abort', lose)
    response.destroy()
  })
  response.once('close', () => incoming.destroy())
  if (signal.aborted) connection.lose()
  else signal.addEventListener('abort', lose, { once: true })
  handler(incoming, response)
  return response.answer
}

function isRequest(value: unknown): value is Request {
  return (
    typeof value === 'object' &&
    value !== null &&
    'url' in value &&
    typeof value.url === 'string' &&
    'headers' in value &&
    typeof value.headers === 'object' &&
    value.headers !== null &&
    'get' in value.headers &&
    'signal' in value
  )
}
