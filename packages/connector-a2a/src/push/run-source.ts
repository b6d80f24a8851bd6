import { createHash } from 'node:crypto'

import type { Broker } from '@signalbox/broker-core'
import { encodeText, isBrokerError } from '@signalbox/broker-core'
import { pauseAfter, unlessAborted } from '@signalbox/broker-core/internal'
import type {
  SourcedMessage,
  SourceSubscription,
  WebhookFormat,
  WebhookMessageSource,
} from '@signalbox/broker-core/ports'
import { RUN_SOURCE } from '@signalbox/broker-core/ports'
import type { JsonObject } from '@signalbox/http-kit'
import { readJson } from '@signalbox/http-kit/internal'

import { A2A_CODES } from '../native/errors.ts'
import type { AgentRequests } from '../requests/agent-requests.ts'
import { FoldedTask, foldRun } from '../runs/folded-task.ts'
import type { RunChunksParts } from '../runs/run-chunks.ts'
import { runChunks } from '../runs/run-chunks.ts'
import { newRun } from '../runs/run-log.ts'
import { orNothing, RunResults } from '../runs/run-results.ts'
import { phaseOf } from '../runs/seen-task.ts'
import type { TaskRecords } from '../subscriber/isolation/task-records.ts'
import { isObject, METHODS, parsedJson, requestTo, translateResult } from '../wire/index.ts'
import type { PushNotes } from './push-config.ts'
import { agentOf, readNotes, readSecrets, signingSecret } from './push-config.ts'

export interface RunSourceParts extends RunChunksParts {
  readonly broker: Broker
  readonly records: TaskRecords
  readonly requests: AgentRequests
}

/** The name of the format of push notifications. */
export const PUSH_FORMAT = 'a2a.push'

/**
 * Returns the form of push notifications: one event each, with the token and the credentials that the client has set.
 * Receivers of A2A know no consent, and the answer 410 ends the configuration.
 */
function a2aPushFormat(): WebhookFormat {
  return {
    name: PUSH_FORMAT,
    maxBatch: 1,
    goneEnds: 'removal',
    encode(_type, [message], { notes, secretNotes }) {
      if (message === undefined) return undefined
      const secrets = readSecrets(secretNotes)
      const { authorization, token } = secrets
      const isOld = readNotes(notes)?.version === '0.3'
      return {
        headers: {
          'content-type': isOld ? 'application/json' : 'application/a2a+json',
          ...(authorization === undefined ? {} : { authorization }),
          ...(token === undefined ? {} : { 'x-a2a-notification-token': token }),
        },
        body: message.body,
        unsigned: signingSecret(secrets) === undefined,
      }
    },
    verify: async () => ({}),
  }
}

/** The position of a configuration in the events of its task. */
export interface PushPosition {
  /** The run; undefined before the first one. */
  readonly run?: string | undefined
  /** The sequence of the last event of the run that was delivered, or passed over. */
  readonly sequence: number
  /** The last run of a message, while the gateway follows the task by its own run. */
  readonly after?: string | undefined
  /** The digest of the task as it was delivered last. */
  readonly seen?: string | undefined
}

/** The most configurations of a task, and of a caller. */
export const MAX_PER_TASK = 10
export const MAX_PER_CALLER = 1_000

/** The pause between two looks for the next run of a task that waits for its caller, in ms. */
const LOOK = { firstMs: 500, longestMs: 5_000 }

/** The pauses between two questions to an agent about a task, in ms: the longest if it answers, and if it does not. */
const ASK_MS = 1_000
const MAX_ASK_MS = 30_000
const MAX_UNANSWERED_MS = 300_000

/** The time for an agent to answer a question about a task, in ms. */
const ANSWER_MS = 30_000

/** The time after which an agent is asked about a task that waits, in ms: it may continue without its caller. */
const WAITING_MS = 30_000

/** The news of a task that no run has: a run that follows it, or the task as it is. */
type News = { readonly run: string } | { readonly task: JsonObject } | 'gone' | undefined

/** The events of tasks of agents whose answers are kept, for their push notifications. */
export class RunSource implements WebhookMessageSource {
  readonly type = RUN_SOURCE
  readonly format = a2aPushFormat()
  readonly maxPerOwner = MAX_PER_CALLER
  readonly maxPerChannel = MAX_PER_TASK
  readonly #parts: RunSourceParts
  /** The runs by which this node follows tasks, by channel: configurations of one task share them. */
  readonly #following = new Map<string, Promise<string | undefined>>()

  constructor(parts: RunSourceParts) {
    this.#parts = parts
  }

  /** @inheritdoc */
  permits(owner: string, channel: string): boolean {
    return this.#parts.broker.as({ clientId: owner }).permits('call', 'agents', agentOf(channel))
  }

  /** @inheritdoc */
  async *open(
    subscription: SourceSubscription,
    { signal }: { readonly signal: AbortSignal },
  ): AsyncGenerator<SourcedMessage> {
    const notes = readNotes(subscription.notes)
    if (notes === undefined) return
    yield* new FollowedTask(this, this.#parts, subscription, notes, signal).messages()
  }

  /** Opens a run that follows a task, or returns the one that is open; undefined if the agent opens none. */
  follow(notes: PushNotes, subscription: SourceSubscription): Promise<string | undefined> {
    const { channel } = subscription
    let following = this.#following.get(channel)
    if (following === undefined) {
      following = this.#subscribe(notes, subscription)
      this.#following.set(channel, following)
      const forget = (): void => void this.#following.delete(channel)
      following.then((run) => run === undefined && forget(), forget)
    }
    return following
  }

  /** Forgets a run that follows a task, because it is over. */
  async followed(channel: string, run: string): Promise<void> {
    if ((await this.#following.get(channel)) === run) this.#following.delete(channel)
  }

  async #subscribe(
    { agentId, taskId }: PushNotes,
    { owner, account }: SourceSubscription,
  ): Promise<string | undefined> {
    const run = newRun()
    const { failure, status, whole } = await this.#parts.requests.request(
      agentId,
      requestTo(METHODS.resubscribe, '1.0', { id: taskId }),
      {
        caller: { clientId: owner, account },
        streamId: run,
        log: { run, once: undefined },
        wire: WIRE,
        timeoutMs: ANSWER_MS,
      },
    )
    return failure === undefined && whole !== true && status >= 200 && status < 300 ? run : undefined
  }
}

const WIRE = { version: '1.0', answer: 'native' } as const

/** The events of one task for one configuration. */
class FollowedTask {
  readonly #source: RunSource
  readonly #parts: RunSourceParts
  readonly #subscription: SourceSubscription
  readonly #notes: PushNotes
  readonly #signal: AbortSignal
  readonly #folded: FoldedTask
  #at: PushPosition
  /** The run that this node has opened to follow the task. */
  #opened: string | undefined

  constructor(
    source: RunSource,
    parts: RunSourceParts,
    subscription: SourceSubscription,
    notes: PushNotes,
    signal: AbortSignal,
  ) {
    this.#source = source
    this.#parts = parts
    this.#subscription = subscription
    this.#notes = notes
    this.#signal = signal
    this.#folded = new FoldedTask()
    this.#at = readPosition(subscription.position)
  }

  async *messages(): AsyncGenerator<SourcedMessage> {
    const runs = await this.#runs()
    const { after, run } = this.#at
    const { log } = this.#parts
    // The task of a notification has what earlier runs have added to it.
    for (const earlier of runs.slice(0, Math.max(0, runs.indexOf(after ?? run ?? ''))))
      await foldRun(log, earlier, this.#folded)
    if (after !== undefined) await foldRun(log, after, this.#folded)
    if (run === undefined && runs[0] !== undefined) this.#at = { ...this.#at, run: runs[0], sequence: 0 }
    for (;;) {
      if (this.#at.run !== undefined) yield* this.#run(this.#at.run)
      if (this.#folded.phase === 'over') return
      if (!(yield* this.#next())) return
    }
  }

  /** Returns the messages of a run after the position. */
  async *#run(run: string): AsyncGenerator<SourcedMessage> {
    const results = new RunResults()
    const { sequence: start } = this.#at
    const { account, owner: clientId } = this.#subscription
    const { agentId } = this.#notes
    const isExpected = run === this.#opened
    const read = { run, agentId, clientId, account, isExpected }
    for await (const chunk of runChunks(this.#parts, read, this.#signal)) {
      for (const { isLast, part, result, sequence } of results.read(chunk)) {
        const event = this.#add(result)
        const digest = this.#digest
        if (sequence <= start || event === undefined) {
          this.#at = { ...this.#at, seen: digest }
          continue
        }
        // A run that follows a task begins with the task as it is.
        if (isObject(event['task']) && digest === this.#at.seen) continue
        // An event whose translation is two results is over after the second.
        this.#at = { ...this.#at, sequence: isLast ? sequence : sequence - 1, seen: digest }
        const message = this.#message(event, part > 0 ? `${run}.${sequence}.${part}` : `${run}.${sequence}`)
        if (message !== undefined) yield message
        if (this.#folded.phase === 'over') return
      }
    }
    await this.#source.followed(this.#subscription.channel, run)
  }

  /**
   * Waits for the next run of the task, or finds out how it goes on without one. Returns false if the agent does not know
   * the task any more.
   */
  async *#next(): AsyncGenerator<SourcedMessage, boolean> {
    const last = this.#at.after ?? this.#at.run
    let askAt = this.#folded.phase === 'waiting' ? performance.now() + WAITING_MS : 0
    for (let looks = 1, asks = 1; ; looks++) {
      this.#signal.throwIfAborted()
      const runs = await this.#runs()
      const run = runs[runs.indexOf(last ?? '') + 1]
      if (run !== undefined && run !== last) {
        this.#at = { run, sequence: 0, seen: this.#at.seen }
        return true
      }
      if (performance.now() >= askAt) {
        const news = await this.#news()
        if (news === 'gone') return false
        if (news !== undefined && 'run' in news) {
          this.#opened = news.run
          this.#at = { run: news.run, sequence: 0, after: last, seen: this.#at.seen }
          return true
        }
        if (news !== undefined) {
          this.#folded.addResult(news)
          const digest = this.#digest
          if (digest !== this.#at.seen) {
            this.#at = { ...this.#at, seen: digest }
            const message = this.#message(news, `${this.#at.run ?? ''}~${digest}`)
            if (message !== undefined) yield message
            asks = 1
          }
          if (this.#folded.phase === 'over') return false
        }
        askAt = performance.now() + this.#pauseAfter(news, asks++)
      }
      await pauseAfter(looks, { signal: this.#signal, backoff: LOOK })
    }
  }

  /** Returns the time until the agent is asked again, in ms. */
  #pauseAfter(news: News, asks: number): number {
    if (news !== undefined && this.#folded.phase === 'waiting') return WAITING_MS
    return Math.min(ASK_MS * 2 ** (asks - 1), news === undefined ? MAX_UNANSWERED_MS : MAX_ASK_MS)
  }

  /** Asks the agent about the task; undefined if there is no answer now. */
  async #news(): Promise<News> {
    const { agentId, taskId } = this.#notes
    const { account, owner: clientId } = this.#subscription
    try {
      const body = requestTo(METHODS.get, '1.0', { id: taskId })
      const caller = { clientId, account }
      const options = { caller, wire: WIRE, timeoutMs: ANSWER_MS, signal: this.#signal }
      const reply = await this.#parts.requests.request(agentId, body, options)
      const answer = reply.failure === undefined ? parsedJson(reply.body) : undefined
      if (!isObject(answer)) return undefined
      const { error, result } = answer
      if (isObject(error)) return error['code'] === A2A_CODES.TASK_NOT_FOUND ? 'gone' : undefined
      const task = isObject(result) && isObject(result['task']) ? result['task'] : result
      if (!isObject(task)) return undefined
      const { status } = task
      if (phaseOf(isObject(status) ? status['state'] : undefined) !== 'open') return { task }
      const run = await unlessAborted(this.#source.follow(this.#notes, this.#subscription), this.#signal)
      return run === undefined ? { task } : { run }
    } catch (error) {
      if (isBrokerError(error)) return undefined
      throw error
    }
  }

  async #runs(): Promise<readonly string[]> {
    const { agentId, taskId } = this.#notes
    const known = await this.#parts.records.runsOf(agentId, taskId)
    if (known.length > 0) return known
    // The task of an inbox has the id of its run.
    const first = await this.#parts.log.first(taskId)
    return first?.agentId === agentId ? [taskId] : []
  }

  /** Adds a result to the task. Returns the event that a notification has; undefined if it has none. */
  #add(result: unknown): JsonObject | undefined {
    if (!isObject(result)) return undefined
    this.#folded.addResult(result)
    const { artifactUpdate: update } = result
    if (!isObject(update) || update['append'] !== true) return result
    if (update['lastChunk'] !== true) return undefined
    // The artifact as a whole: a notification has no other parts of it.
    const { append: _, artifact, ...rest } = update
    const id = isObject(artifact) ? artifact['artifactId'] : undefined
    const artifacts: unknown = this.#folded.task?.['artifacts']
    const whole: unknown = Array.isArray(artifacts)
      ? artifacts.find((one) => isObject(one) && one['artifactId'] === id)
      : undefined
    return { artifactUpdate: { ...rest, artifact: whole ?? artifact } }
  }

  /** Returns the task in A2A 0.3. */
  #task03(): unknown {
    const { task } = this.#folded
    return task && orNothing(() => translateResult(METHODS.get, '1.0', '0.3', task))
  }

  /** The digest of the status, and of the sizes of the artifacts: it is made for each event. */
  get #digest(): string {
    const { artifacts, status } = this.#folded.task ?? {}
    const sizes = Array.isArray(artifacts) ? artifacts.map(sizeOf) : []
    return createHash('sha256')
      .update(JSON.stringify([status, sizes]))
      .digest('base64url')
      .slice(0, 22)
  }

  /** Returns the notification of an event; undefined if the version of the configuration has none. */
  #message(event: JsonObject, name: string): SourcedMessage | undefined {
    const { owner: clientId, channel } = this.#subscription
    const content = this.#notes.version === '1.0' ? event : this.#task03()
    if (content === undefined) return undefined
    const body = encodeText(JSON.stringify(content))
    const message = { id: name, clientId, channel, timestamp: Date.now(), body, metadata: '', tags: {} }
    return { message, name, position: positionText(this.#at) }
  }
}

/** Returns a position as it is stored. */
export function positionText(position: PushPosition): string {
  return JSON.stringify(position)
}

function readPosition(text: string | undefined): PushPosition {
  const value = text === undefined ? undefined : readJson(text)?.value
  if (!isObject(value)) return { sequence: 0 }
  const { after, run, seen, sequence } = value
  return {
    run: typeof run === 'string' ? run : undefined,
    sequence: typeof sequence === 'number' ? sequence : 0,
    after: typeof after === 'string' ? after : undefined,
    seen: typeof seen === 'string' ? seen : undefined,
  }
}

function sizeOf(artifact: unknown): unknown {
  if (!isObject(artifact)) return undefined
  const { artifactId, parts } = artifact
  return [artifactId, Array.isArray(parts) ? parts.length : 0]
}
