import type { HttpConnection, HttpRequest, HttpResponse } from '../surface/http-message.ts'

/** The most requests of a connection that may wait for the answers to earlier ones. */
const MOST_PIPELINED = 16

interface Pipeline {
  waiting: number
  /** The response that was counted last: a server and the connector in it both ask. */
  last: HttpResponse
}

const pipelines = new WeakMap<HttpConnection, Pipeline>()

/**
 * Returns true for a request that must not be served: its client did not wait for the answers to more than 16 earlier
 * ones, and the connection is closed. Node reads up to 64 KiB of a connection at a time, and serves all requests in it in
 * one tick, up to 1,700. A client that sends ahead must expect a close, and repeats what was not answered (RFC 9112,
 * 9.3.2).
 */
export function exceedsPipeline({ socket }: HttpRequest, response: HttpResponse): boolean {
  // A response has no socket while an earlier one uses it.
  if (response.socket !== null) return false
  if (socket.destroyed === true) return true
  const pipeline = pipelines.get(socket)
  if (pipeline?.last === response) return false
  const waiting = (pipeline?.waiting ?? 0) + 1
  if (waiting > MOST_PIPELINED) {
    stopParsing(socket)
    socket.destroy?.()
    return true
  }
  const counted = pipeline ?? { waiting, last: response }
  counted.waiting = waiting
  counted.last = response
  pipelines.set(socket, counted)
  response.once('close', () => counted.waiting--)
  return false
}

/** Node parses the rest of its buffer also after a close. Only a code of failure from this callback ends that. */
function stopParsing(socket: HttpConnection): void {
  if (!('parser' in socket) || typeof socket.parser !== 'object' || socket.parser === null) return
  Object.assign(socket.parser, { onIncoming: () => -1 })
}
