import { randomUUID } from 'node:crypto'

import type { HeldBytes, Refusal } from '@signalbox/http-kit'

import type { AgentReply } from './agent-reply.ts'

/** Counts the bytes of a reply in the budgets of its caller, until the answer is written. */
export interface ReplyHold {
  charge(bytes: number): Refusal | undefined
  /** Returns the refusal of a reply of this size if memory is short. */
  refusesBody(bytes: number): Refusal | undefined
}

const NO_BODY = new Uint8Array(0)

/**
 * Returns the reply for a request that a limit of this node has refused. The agent may have processed it, unless
 * `unsent` is set.
 */
export function refusedReply({ message }: Refusal): AgentReply {
  return { executed: false, error: `server busy: ${message}`, failure: 'busy', status: 0, body: NO_BODY }
}

/**
 * The replies on their way through the broker to requests of this node. If this node serves the agent too, the bytes of
 * the reply stay counted until the request takes them over.
 */
export class RepliesOnTheWay {
  readonly #node = randomUUID()
  readonly #held = new Map<string, HeldBytes | undefined>()
  #last = 0

  /** Begins to expect a reply. Returns the id of the request. */
  expect(): string {
    const id = `${this.#node}.${++this.#last}`
    this.#held.set(id, undefined)
    return id
  }

  /** Keeps the bytes of a reply counted, if a request of this node expects it. Otherwise releases them. */
  sent(id: string | undefined, held: HeldBytes): void {
    if (id !== undefined && this.#held.has(id)) this.#held.set(id, held)
    else held.release()
  }

  /** Ends the wait for a reply, and releases its bytes. */
  end(id: string): void {
    this.#held.get(id)?.release()
    this.#held.delete(id)
  }
}
