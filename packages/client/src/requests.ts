import type { ClientContext } from './client-context.ts'
import { callSignal } from './client-context.ts'
import { contentOf, dataOf, eventText, isObject, asString } from './cloud-event.ts'
import { SignalboxError } from './errors.ts'
import type { CeAnswer } from './http-calls.ts'
import { callCe, eventCall } from './http-calls.ts'
import type { MessageOptions } from './send.ts'
import type { Duration } from './time.ts'
import { wholeSeconds } from './time.ts'

export interface RequestOptions extends MessageOptions {
  /** The longest time to wait for the answer, 1 s to 1 h, in whole seconds. @default the server's, 60 s */
  readonly timeout?: Duration | undefined
}

/** The wait of the server without a time-out in the request is at most this, in ms. */
const LONGEST_MS = 3_600_000

/** Added to the wait of the server, in ms. */
const MARGIN_MS = 5000

/** Sends a command: resolves when a responder has executed it. @throws SignalboxError, or the signal's reason */
export async function sendCommand(
  context: ClientContext,
  channel: string,
  data: unknown,
  options: RequestOptions,
): Promise<void> {
  await request(context, '/ce/send/command', channel, data, options)
}

/** Sends a query: resolves with the data of the reply. @throws SignalboxError, or the signal's reason */
export async function sendQuery(
  context: ClientContext,
  channel: string,
  data: unknown,
  options: RequestOptions,
): Promise<unknown> {
  const { data: event } = await request(context, '/ce/send/query', channel, data, options)
  return isObject(event) ? dataOf(event, asString(event['datacontenttype'])) : undefined
}

async function request(
  context: ClientContext,
  path: '/ce/send/command' | '/ce/send/query',
  channel: string,
  data: unknown,
  options: RequestOptions,
): Promise<CeAnswer> {
  const { id = crypto.randomUUID(), type = context.type, contentType, timeout } = options
  const seconds = timeout === undefined ? undefined : wholeSeconds('timeout', timeout, 1, 3600)
  const body = eventText({ id, type, source: context.source, channel }, contentOf(data, contentType))
  const answer = await callCe(context.transport, {
    ...eventCall(path, body, { timeout: seconds }, callSignal(context, options.signal)),
    waitMs: seconds === undefined ? LONGEST_MS : seconds * 1000 + MARGIN_MS,
  })
  if (!answer.rejected) return answer
  const reason = isObject(answer.data) ? asString(answer.data['error']) : undefined
  throw new SignalboxError('REQUEST_REJECTED', reason ?? answer.message)
}
