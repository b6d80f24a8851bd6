import { randomUUID } from 'node:crypto'

import type { Static } from 'typebox'
import { Type } from 'typebox'

import type { AnswerOf } from '../envelope.ts'
import { ManagementError, toManagementError } from '../errors.ts'
import type { RedriveRequest } from './redrive.ts'
import { redrive, RedriveProgress } from './redrive.ts'

/** The most redrives that run at the same time on a node. */
export const MAX_RUNNING = 4

/** The redrives that have ended and are still shown. */
const MAX_ENDED = 20

/** The messages that stayed, with their reasons, in an answer. */
const MAX_LEFT = 100

const STATES = ['running', 'done', 'cancelled', 'failed'] as const

/** A redrive in answers. */
export const redriveSchema = Type.Object({
  id: Type.String(),
  channel: Type.String({ description: 'The dead-letter queue.' }),
  source: Type.Optional(Type.String({ description: 'The condition on the source, if there is one.' })),
  reason: Type.Optional(Type.String({ description: 'The condition on the reason, if there is one.' })),
  client: Type.String({ description: 'The ClientID of the operator.' }),
  state: Type.Unsafe<(typeof STATES)[number]>({ type: 'string', enum: [...STATES] }),
  started_at: Type.String({ description: 'ISO 8601.' }),
  ended_at: Type.Union([Type.String(), Type.Null()], { description: 'ISO 8601; null while it runs.' }),
  total: Type.Integer({ minimum: 0, description: 'The messages in the queue at the start, at most 100,000.' }),
  examined: Type.Integer({ minimum: 0, description: 'The messages looked at so far.' }),
  redriven: Type.Integer({ minimum: 0, description: 'The messages sent back so far.' }),
  left_count: Type.Integer({ minimum: 0, description: 'The selected messages that stay.' }),
  left: Type.Array(Type.Object({ id: Type.String(), reason: Type.String() }), {
    description: `The first ${MAX_LEFT} messages that stay, with the reason.`,
  }),
  error: Type.Optional(Type.String({ description: 'The reason for the state failed.' })),
})

type ShownRedrive = AnswerOf<Static<typeof redriveSchema>>

interface Redrive {
  readonly id: string
  readonly request: RedriveRequest
  readonly controller: AbortController
  readonly startedAt: string
  readonly total: number
  state: ShownRedrive['state']
  endedAt: string | null
  error: string | undefined
  finished: Promise<void>
}

/** The redrives of whole queues and groups that this node runs without a waiting client. */
export class Redrives {
  readonly #redrives = new Map<string, Redrive>()
  readonly #failed: (error: unknown) => void

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed
  }

  /** Newest first. */
  list(): ShownRedrive[] {
    return [...this.#redrives.values()].toReversed().map(shownRedrive)
  }

  /** @throws ManagementError REDRIVE_LIMIT */
  start(request: Omit<RedriveRequest, 'signal' | 'progress'>): ShownRedrive {
    const running = [...this.#redrives.values()].filter(({ state }) => state === 'running')
    if (running.length >= MAX_RUNNING) {
      throw new ManagementError(
        'REDRIVE_LIMIT',
        `this node runs ${running.length} redrives, the maximum; wait until one has ended, or cancel one`,
        { limit: MAX_RUNNING },
      )
    }
    const controller = new AbortController()
    const begun: Redrive = {
      id: randomUUID(),
      request: { ...request, signal: controller.signal, progress: new RedriveProgress() },
      controller,
      startedAt: new Date().toISOString(),
      total: request.maxExamined,
      state: 'running',
      endedAt: null,
      error: undefined,
      finished: Promise.resolve(),
    }
    this.#redrives.set(begun.id, begun)
    begun.finished = this.#run(begun)
    return shownRedrive(begun)
  }

  async #run(begun: Redrive): Promise<void> {
    try {
      await redrive(begun.request)
      begun.state = begun.controller.signal.aborted ? 'cancelled' : 'done'
    } catch (error) {
      const { code, message } = toManagementError(error)
      begun.state = 'failed'
      begun.error = `${code}: ${message}`
      if (code === 'INTERNAL') this.#failed(error)
    }
    begun.endedAt = new Date().toISOString()
    const ended = [...this.#redrives.values()].filter(({ state }) => state !== 'running')
    for (const { id } of ended.slice(0, Math.max(0, ended.length - MAX_ENDED))) this.#redrives.delete(id)
  }

  /** Stops a redrive after its current step. @throws ManagementError REDRIVE_NOT_FOUND */
  async cancel(id: string): Promise<ShownRedrive> {
    const found = this.#redrives.get(id)
    if (found === undefined) {
      throw new ManagementError(
        'REDRIVE_NOT_FOUND',
        `this node runs no redrive with the id ${JSON.stringify(id)}; /api/redrives lists the redrives`,
        { id },
      )
    }
    found.controller.abort()
    await found.finished
    return shownRedrive(found)
  }

  /** Stops every redrive, and returns the messages that they hold to their positions. */
  async close(): Promise<void> {
    for (const { controller } of this.#redrives.values()) controller.abort()
    await Promise.all([...this.#redrives.values()].map(({ finished }) => finished))
  }
}

function shownRedrive({ id, request, state, startedAt, endedAt, total, error }: Redrive): ShownRedrive {
  const { channel, selection, operator, progress } = request
  return {
    id,
    channel,
    source: selection.source,
    reason: selection.reason,
    client: operator.clientId,
    state,
    started_at: startedAt,
    ended_at: endedAt,
    total,
    examined: progress.examined,
    redriven: progress.redriven,
    left_count: progress.leftCount,
    left: progress.left.slice(0, MAX_LEFT),
    error,
  }
}
