import type { EncodedRequest, Reply, RequestMessage } from '@signalbox/broker-core/engine'
import { decodeRequest, toMessage } from '@signalbox/broker-core/engine'
import { messageOf } from '@signalbox/broker-core/internal'
import type { Msg } from '@nats-io/transport-node'

import { runInBackground } from '../background.ts'
import type { Parts } from '../parts.ts'
import { encodeAnswer } from './answers.ts'

export type RequestHandler = (request: RequestMessage) => Promise<Reply>

/** The interval at which a node reports that it is still working on a request, in milliseconds. */
const WORKING_MS = 5_000
const MAX_TIMER_MS = 2 ** 31 - 1

const FAILED: Reply = Object.freeze({
  executed: false,
  error: 'the subscriber failed to handle the request',
  body: new Uint8Array(0),
  metadata: '',
  tags: Object.freeze({}),
})

const TOO_LARGE: Reply = { ...FAILED, error: 'the answer is larger than the NATS servers accept (max_payload)' }

/** Handles requests that arrived on this node, and reports their progress to the requesters. */
export class Responder {
  readonly #parts: Parts
  readonly #workingMs: number
  /**
   * The running handlers by the inbox of the answer. Several groups may handle the same request on one node.
   */
  readonly #handling = new Map<string, Set<AbortController>>()

  constructor(parts: Parts, workingMs = WORKING_MS) {
    this.#parts = parts
    this.#workingMs = workingMs
    const { connection, subjects, node } = parts
    connection.listen(subjects.node(node, 'cancel'), (message) => {
      for (const controller of this.#handling.get(message.string()) ?? []) controller.abort()
    })
  }

  /** Refuses a request that arrived while the subscriber was closing, so that others get it. */
  refuse(message: Msg): void {
    message.respond(encodeAnswer({ kind: 'gone', node: this.#parts.node }))
  }

  /** Decodes a request. Returns undefined if it is not valid. */
  read(message: Msg): EncodedRequest | undefined {
    return message.reply === undefined ? undefined : decodeRequest(message.data)
  }

  /**
   * Runs the handler and sends its reply. Not async, so that meanwhile the node keeps only the data that the
   * answer needs.
   */
  handle(inbox: string, request: EncodedRequest, handler: RequestHandler): void {
    const controller = new AbortController()
    const handling = this.#handling.get(inbox) ?? new Set()
    handling.add(controller)
    this.#handling.set(inbox, handling)
    const late = setTimeout(() => controller.abort(), Math.min(request.leftMs, MAX_TIMER_MS)).unref()
    const replied = this.#replied(handler, requestMessage(request, controller.signal))
    const settled = this.#settle(inbox, controller, late, replied)
    runInBackground(this.#parts.settings.onProblem, 'answering a command or query', settled)
  }

  /** Calls the handler, and turns an error that it throws synchronously into a rejection. */
  #replied(handler: RequestHandler, request: RequestMessage): Promise<Reply> {
    try {
      return handler(request)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async #settle(
    inbox: string,
    controller: AbortController,
    late: NodeJS.Timeout,
    replied: Promise<Reply>,
  ): Promise<void> {
    const { settings } = this.#parts
    const working = this.#reportProgress(inbox)
    let reply = FAILED
    try {
      reply = await replied
    } catch (error) {
      // The error may contain details that are not for the requester; after an abort no answer is needed.
      if (!controller.signal.aborted) {
        settings.onProblem({ kind: 'listener', message: 'the handler of a command or query threw', error })
      }
    } finally {
      clearInterval(working)
      clearTimeout(late)
      const handling = this.#handling.get(inbox)
      handling?.delete(controller)
      if (handling?.size === 0) this.#handling.delete(inbox)
    }
    if (!controller.signal.aborted) await this.#answer(inbox, reply)
  }

  /** Reports to the requester that the request was accepted, and then repeatedly that it is being handled. */
  #reportProgress(inbox: string): NodeJS.Timeout {
    const { connection, node, settings } = this.#parts
    const say = (kind: 'accepted' | 'working'): void => {
      try {
        if (connection.connected) connection.nc.publish(inbox, encodeAnswer({ kind, node }))
      } catch (error) {
        settings.onProblem({
          kind: 'failed',
          message: `reporting the progress of a request failed: ${messageOf(error)}`,
          error,
        })
      }
    }
    say('accepted')
    return setInterval(() => say('working'), this.#workingMs).unref()
  }

  async #answer(inbox: string, reply: Reply): Promise<void> {
    const { connection, publisher, settings, node } = this.#parts
    let payload = encodeAnswer({ kind: 'reply', node, reply })
    try {
      publisher.assertFits(payload)
    } catch {
      payload = encodeAnswer({ kind: 'reply', node, reply: TOO_LARGE })
    }
    try {
      await connection.ready()
      connection.nc.publish(inbox, payload)
    } catch (error) {
      settings.onProblem({ kind: 'failed', message: `answering a command or query failed: ${messageOf(error)}`, error })
    }
  }

  /** Aborts all handlers when the engine closes; their requesters receive no answer. */
  close(): void {
    for (const handling of this.#handling.values()) for (const controller of handling) controller.abort()
  }
}

function requestMessage({ message, channel, sentAt, timeoutMs }: EncodedRequest, signal: AbortSignal): RequestMessage {
  return { ...toMessage(message, { channel, timestamp: sentAt }), deadline: sentAt + timeoutMs, signal }
}
